"""Read topics of Kafka and Iggy, log segments and state directories as Arrow streams.

:func:`topic`, :func:`iggy`, :func:`segments` and :func:`state` return a :class:`Reader`: a stream of record batches and a context
manager. It opens its files or connections when the first batch is read, and keeps a bounded part in memory.
"""

import importlib
from typing import TYPE_CHECKING, Any

from letterhead.reader import Reader

if TYPE_CHECKING:
    from letterhead.sources.iggy_reader import iggy as iggy
    from letterhead.sources.segments_reader import segments as segments
    from letterhead.sources.state_reader import state as state
    from letterhead.sources.topic_reader import topic as topic

__all__ = ["Reader", "iggy", "segments", "state", "topic"]

# A reader and its dependencies (pyarrow, rocksdict, kafka-python) are imported on first use.
_READERS = {
    "topic": "letterhead.sources.topic_reader",
    "segments": "letterhead.sources.segments_reader",
    "state": "letterhead.sources.state_reader",
    "iggy": "letterhead.sources.iggy_reader",
}


def __getattr__(name: str) -> Any:
    if name in _READERS:
        globals()[name] = getattr(importlib.import_module(_READERS[name]), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
