"""Readers of what Kafka keeps: log segments, state directories and topics, as Arrow streams.

Each gives a :class:`Reader`: a stream of record batches and a context manager, which opens what it needs when the first
batch is asked for and holds a bounded part of it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from letterhead.errors import OffsetsGone, StoreChoiceError, TornTailWarning
from letterhead.read.reader import Reader

if TYPE_CHECKING:
    from letterhead.read.open_segments import segments as segments
    from letterhead.read.open_state import state as state
    from letterhead.read.open_topic import topic as topic

__all__ = ["OffsetsGone", "Reader", "StoreChoiceError", "TornTailWarning", "segments", "state", "topic"]

# A reader and what it needs (pyarrow, rocksdict, kafka-python) are imported when it is first asked for. Its module must
# not have its name: imported by that, it would stand here in the place of the function.
_READERS = ("segments", "state", "topic")


def __getattr__(name: str) -> Any:
    if name in _READERS:
        globals()[name] = getattr(importlib.import_module(f"letterhead.read.open_{name}"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_READERS})
