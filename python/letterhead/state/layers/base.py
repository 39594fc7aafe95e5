"""Base class of the layers around a byte store.

Writes pass through every layer. To avoid forwarding calls, reads skip layers that only log writes: the attribute
``reads`` of a layer is the store to read from.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from letterhead.state.base import BytesStore, HeadersBytesStore
from letterhead.state.context import StoreContext
from letterhead.state.interfaces import ChangelogRecord

__all__ = ["Layer", "chain", "restores_as"]


class Layer:
    """Layer around another store, ``inner``.

    Attributes
    ----------
    reads : store
        The nearest store below that handles reads.
    """

    _answers_reads: ClassVar[bool] = True
    """Whether the layer handles reads."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.reads: Any = inner.reads if isinstance(inner, Layer) and not inner._answers_reads else inner
        self.name: str = inner.name
        self.persistent: bool = inner.persistent
        self.context: StoreContext
        self.layer_name = type(self).__name__

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return bool(self.inner.is_open)

    @property
    def position(self) -> Any:
        """Offsets of the last input records that the store reflects."""
        return self.inner.position

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        self.context = context
        self.inner.open(directory, context)

    def flush(self) -> None:
        """Write cached changes to the store of bytes and to the changelog."""
        if isinstance(self.inner, Layer):
            self.inner.flush()

    def commit(self, offsets: dict[tuple[str, int], int]) -> None:
        """Store the offsets of the changelog."""
        self.inner.commit(offsets)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write changelog records to the store of bytes without logging them again."""
        self.inner.restore(records)

    def close(self) -> None:
        """Close the store."""
        self.inner.close()


def chain(store: Any) -> list[Any]:
    """Return a store and all stores below it, outermost first."""
    stores = [store]
    while isinstance(stores[-1], Layer):
        stores.append(stores[-1].inner)
    return stores


def restores_as(store: Any) -> str:
    """Return the value format of the innermost store; a restore converts changelog records to it."""
    bottom = chain(store)[-1]
    has_headers = bottom.headers if isinstance(bottom, BytesStore) else isinstance(bottom, HeadersBytesStore)
    if has_headers:
        return "headers"
    return "timestamped" if bottom.timestamped else "plain"
