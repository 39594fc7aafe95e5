"""Look up the addresses of a host without waiting longer than a limit: :func:`addresses_of`.

The system's own lookup has no limit, and can take half a minute while a name server is silent. It runs in its own
thread, which is abandoned when the time is over.
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
    """Call a function with the addresses of a host, or with the error; a name is looked up in another thread."""
    with contextlib.suppress(OSError, ValueError):  # an address in digits needs no name server
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
