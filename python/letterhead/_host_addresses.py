"""Look up the addresses of a host with a time limit: :func:`addresses_of`.

The system's own lookup has no limit, and can take half a minute if a name server does not answer. It runs in a separate
thread, which is abandoned at the deadline.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["AddressInfo", "addresses_of", "look_up"]

AddressInfo: TypeAlias = tuple[Any, Any, int, str, Any]
"""An address as :func:`socket.getaddrinfo` returns it."""


def addresses_of(host: str, port: int, seconds: float) -> list[AddressInfo]:
    """Return the addresses of a host; raise OSError if the host has none, TimeoutError if the lookup takes longer."""
    answers: queue.SimpleQueue[list[AddressInfo] | Exception] = queue.SimpleQueue()
    look_up(host, port, answers.put)
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the address of {host} is not known yet") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def look_up(host: str, port: int, answer: Callable[[list[AddressInfo] | Exception], object]) -> None:
    """Look up a host and call ``answer`` with its addresses or the error; names are looked up in another thread."""
    with contextlib.suppress(OSError, ValueError):  # numeric addresses need no name server
        answer(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
        return

    def run() -> None:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            answer(error)
        except ValueError as error:  # a name that cannot be encoded, or a port out of range
            answer(OSError(f"{host!r} is not the name of a host: {error}"))
        else:
            answer(addresses)

    threading.Thread(target=run, name="letterhead-lookup", daemon=True).start()
