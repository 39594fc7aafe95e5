"""What all layers have in common: each wraps the one below it, and passes on what it has nothing to say about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from letterhead.state.base import HeadersBytesStore
from letterhead.state.context import StoreContext

__all__ = ["Layer", "chain", "flush", "restores_as"]


class Layer:
    """A store around a store.

    Parameters
    ----------
    inner : store
        The store below.

    Attributes
    ----------
    inner : store
        As given.
    context : StoreContext
        What the store knows of its task; set by :meth:`open`.
    """

    passes: ClassVar[tuple[str, ...]] = ()
    """Methods that are those of the layer below: looked up once, so that a read does not pay for the layers it skips."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.name: str = inner.name
        self.persistent: bool = inner.persistent
        self.context: StoreContext
        self.layer_name = type(self).__name__
        for name in self.passes:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    @property
    def is_open(self) -> bool:
        """Whether the store below is open."""
        return bool(self.inner.is_open)

    @property
    def position(self) -> Any:
        """How far the store below has read."""
        return self.inner.position

    @property
    def restores_as(self) -> str:
        """What values a changelog is turned into for the store at the bottom: ``plain``, ``timestamped`` or ``headers``."""
        return restores_as(self.inner)

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store below."""
        self.context = context
        self.inner.open(directory, context)

    def flush(self) -> None:
        """Write what is held back to the store at the bottom and to the changelog."""
        flush(self.inner)

    def commit(self, offsets: dict[tuple[str, int], int]) -> None:
        """Note how far the changelog is."""
        self.inner.commit(offsets)

    def restore(self, records: Iterable[Any]) -> None:
        """Give the store at the bottom what its changelog has; nothing is logged again."""
        self.inner.restore(records)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()


def chain(store: Any) -> list[Any]:
    """Give a store and all stores below it, outermost first."""
    found = [store]
    while isinstance(found[-1], Layer):
        found.append(found[-1].inner)
    return found


def restores_as(store: Any) -> str:
    """Give what values a changelog is turned into for a store."""
    if isinstance(store, Layer):
        return store.restores_as
    if isinstance(store, HeadersBytesStore):
        return "headers"
    return "timestamped" if store.timestamped else "plain"


def flush(store: Any) -> None:
    """Write what the layers of a store hold back."""
    if isinstance(store, Layer):
        store.flush()
