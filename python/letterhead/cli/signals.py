"""End a command at SIGTERM and SIGHUP as at Ctrl-C, without leaving a partial file: :func:`termination`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "termination"]


class Terminated(BaseException):
    """Error for a received signal that ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """Exit code that a shell reports for a process ended by the signal."""
        return 128 + self.number


@contextmanager
def termination() -> Iterator[None]:
    """Raise Terminated in the running code when a signal to end the process is received."""
    # Only the main thread may set handlers, and a program may run the command in another thread.
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    # `nohup` ignores SIGHUP for the commands that it runs.
    handled = [number for number in numbers if before[number] is signal.SIG_DFL]
    try:
        for number in handled:
            signal.signal(number, _raise)
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _raise(number: int, frame: FrameType | None) -> None:
    # A second signal does not interrupt the clean-up.
    signal.signal(number, signal.SIG_IGN)
    raise Terminated(number)
