"""Work in a background thread while the next records are read: :class:`Background`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from letterhead._context_managers import Closing

__all__ = ["Background"]

ResultT = TypeVar("ResultT")


class Background(Closing, Generic[ResultT]):
    """Runs one call at a time in a thread; at most one result waits in memory."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[ResultT] | None = None

    def start(self, function: Callable[..., ResultT], *arguments: Any, **options: Any) -> None:
        """Start a call after the previous one ends; raise the error of the previous call."""
        self.wait()
        self._pending = self._thread.submit(function, *arguments, **options)

    def wait(self) -> ResultT | None:
        """Return the result of the last call or raise its error; return None if the result was already returned."""
        pending, self._pending = self._pending, None
        return None if pending is None else pending.result()

    def close(self) -> None:
        """Wait for the last call, and discard its result."""
        self._thread.shutdown()
