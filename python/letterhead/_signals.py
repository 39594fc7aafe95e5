"""Signals while C code that calls back runs: :class:`DeferredSignals`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["DeferredSignals"]


class DeferredSignals:
    """Calls the handlers of signals where :meth:`check` is called, and at the end of the block.

    A handler such as that of Ctrl-C raises an exception. Python calls it between any two instructions, so also in a function
    that C code calls back, which may lose the exception or replace it by another one.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._pending: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> DeferredSignals:
        # Only the main thread may set handlers, and only there does Python call them.
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                handler = None if number is None else signal.getsignal(number)
                if number is not None and callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Call the handlers of the signals that were received."""
        while self._pending:
            number, frame = self._pending.pop(0)
            self._handlers[number](number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending.append((number, frame))
