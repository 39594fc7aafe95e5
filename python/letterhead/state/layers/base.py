"""Base class of the layers around a store of bytes.

Writes pass through every layer. Reads skip layers that only log writes: the attribute ``reads`` of each layer is the
store that answers its reads, which saves forwarding calls.
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
    """Store around another store, ``inner``.

    Attributes
    ----------
    reads : store
        The nearest store below that supports reads.
    """

    _answers_reads: ClassVar[bool] = True
    """Whether reads pass through the layer."""

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
        """The offsets of the input records that the store contains."""
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
    """Return the format of the innermost values, to which a restore converts the changelog."""
    bottom = chain(store)[-1]
    if isinstance(bottom, BytesStore):
        return bottom.format
    if isinstance(bottom, HeadersBytesStore):
        return "headers"
    return "timestamped" if bottom.timestamped else "plain"
