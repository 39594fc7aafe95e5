"""Write Arrow tables to topics of Iggy and Kafka, with their headers: :func:`iggy` and :func:`topic`.

Both return when the server has acknowledged every row.
"""

import importlib
from typing import TYPE_CHECKING, Any

from letterhead.written import Appended, DeliveryError, Written

if TYPE_CHECKING:
    from letterhead.iggy.topic_writer import iggy as iggy
    from letterhead.kafka.topic_writer import topic as topic

__all__ = ["Appended", "DeliveryError", "Written", "iggy", "topic"]

# A writer and its dependencies are imported on first use.
_WRITERS = {"topic": "letterhead.kafka.topic_writer", "iggy": "letterhead.iggy.topic_writer"}


def __getattr__(name: str) -> Any:
    if name in _WRITERS:
        globals()[name] = getattr(importlib.import_module(_WRITERS[name]), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
