"""HTTP requests with a time limit for the whole response, by :mod:`urllib.request`: :func:`open_with`."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from typing import Any

__all__ = ["Deadline", "failure_reason", "is_temporary", "open_with"]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections, because the secret is meant for the named server only."""

    def redirect_request(self, *arguments: Any) -> None:
        """Return None, which makes a redirection an error."""
        return


class Deadline:
    """Closes connections at a deadline, because the time limit of a socket applies to each read, not to the whole response."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._timers: dict[socket.socket, threading.Timer] = {}

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def watch(self, connection: socket.socket) -> None:
        """Close a connection at the deadline, unless the ``with`` block ends before."""
        if connection in self._timers:
            return
        timer = threading.Timer(max(0.0, self._until - time.monotonic()), _end, [connection])
        timer.daemon = True
        self._timers[connection] = timer
        timer.start()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _TimedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Replaces the HTTP and HTTPS handlers of urllib by one whose connections end at a deadline."""

    def __init__(self, deadline: Deadline, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._deadline = deadline
        self._tls = tls

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection without TLS, and send the request."""
        return self.do_open(self._connection, request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection with TLS, and send the request."""
        return self.do_open(self._connection, request)

    def _connection(self, host: str, **options: Any) -> http.client.HTTPConnection:
        deadline = self._deadline
        https = http.client.HTTPSConnection

        class Watched(http.client.HTTPConnection if self._tls is None else https):  # type: ignore[misc]
            def send(self, data: Any) -> None:
                super().send(data)  # also sent to a proxy before TLS begins
                deadline.watch(self.sock)

        return Watched(host, **options, **({} if self._tls is None else {"context": self._tls}))


def open_with(deadline: Deadline, tls: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Return an opener whose connections close at a deadline; with ``tls``, it uses HTTPS."""
    return urllib.request.build_opener(_NoRedirect(), _TimedHandler(deadline, tls))


def failure_reason(error: Exception, server: str, remedy: str) -> str:
    """Return the reason why a request had no response.

    Raises
    ------
    ConnectionError
        If the certificate of the server is not trusted, which makes retries useless; ``remedy`` explains how to trust an
        authority.
    """
    # TLS errors also have an attribute ``reason``, but it is text.
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise ConnectionError(
            f"the certificate of {server} is not trusted: {cause.verify_message}; name the authority that signed it in {remedy}"
        ) from None
    return getattr(cause, "strerror", None) or type(cause).__name__


def is_temporary(status: int) -> bool:
    """Return whether a request that failed with this status may succeed later."""
    return status >= 500 or status == 429
