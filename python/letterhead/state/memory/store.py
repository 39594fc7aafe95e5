"""Base class of in-memory stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from letterhead.state.base import BytesStore
from letterhead.state.interfaces import Context
from letterhead.state.storage.position import Position

__all__ = ["InMemoryStore"]


class InMemoryStore(BytesStore):
    """Base class of in-memory byte stores."""

    persistent: ClassVar[bool] = False

    def open(self, directory: Path | None = None, context: Context | None = None) -> None:
        """Open the empty store. The directory is not used; the context provides the current record.

        Raises
        ------
        ProcessorStateError
            If the store is open.
        """
        self._check_closed()
        self._clear()
        self.position = Position()
        self._opened(context)

    def close(self) -> None:
        """Close the store and its iterators, and discard its rows."""
        self._closed()
        self._clear()

    def commit(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Do nothing, because an in-memory store has no files."""

    def _clear(self) -> None:
        raise NotImplementedError
