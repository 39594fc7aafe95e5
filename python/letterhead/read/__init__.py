"""Read topics of Kafka and Iggy, log segments and state directories as Arrow streams.

:func:`topic`, :func:`iggy`, :func:`segments` and :func:`state` return a :class:`Reader`: a stream of record batches and a context
manager. It opens its files or connections when the first batch is read, and keeps a bounded part in memory.
"""

import importlib
from typing import TYPE_CHECKING, Any

from letterhead.errors import LogTruncated, OffsetsGone, StoreChoiceError, TornTailWarning
from letterhead.read.reader import Reader

if TYPE_CHECKING:
    from letterhead.read.open_iggy import iggy as iggy
    from letterhead.read.open_segments import segments as segments
    from letterhead.read.open_state import state as state
    from letterhead.read.open_topic import topic as topic

__all__ = [
    "topic",
    "segments",
    "state",
    "iggy",
    "Reader",
    "OffsetsGone",
    "LogTruncated",
    "StoreChoiceError",
    "TornTailWarning",
]

# A reader and its dependencies (pyarrow, rocksdict, kafka-python) are imported on first use. A module must not have the
# name of its function: importing it would replace the function in this namespace.
_READERS = ("iggy", "segments", "state", "topic")


def __getattr__(name: str) -> Any:
    if name in _READERS:
        globals()[name] = getattr(importlib.import_module(f"letterhead.read.open_{name}"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_READERS})
