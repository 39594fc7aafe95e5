"""The API of the KIP-82 drafts: records, headers, interceptors, clients and a message log.

Kafka never released these drafts. The formats ``kip82-typed``, ``kip82-int``, ``kip82-wrapper`` and the message formats
around them read and write their bytes; the classes follow the drafts, with names in the style of Python. A
``header_format`` selects the draft: ``"typed"`` has text keys and typed values, ``"int"`` integer keys, and ``"wrapper"``
integer keys inside the value of a message. Start with :class:`ProducerRecord` and :class:`ConsumerRecord`, or
:class:`MessageLog`. The errors are in :mod:`letterhead.errors`. Requests for several partitions are built from the
classes in ``letterhead.kip82.requests``. Functions for compaction are in ``letterhead.kip82.compaction``, and functions
that convert messages between magics in ``letterhead.kip82.versions``.

Examples
--------
>>> from letterhead.kip82 import ConsumerRecord, Headers, ProducerRecord
>>> record = ProducerRecord("orders", b"k", b"42")
>>> record.get_headers().put_string("tenant", "acme")
>>> record.get_headers().put_integer("retry", 3)
>>> [received] = ConsumerRecord.read(record.to_bytes(), topic="orders")
>>> received.get_headers().get_all("retry"), received.get_headers().keys()
([3], ['tenant', 'retry'])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from letterhead._topic_partition import TopicPartition
from letterhead.kip82.audit import Audit, AuditEntry, AuditKeys
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.headers import Headers
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.interceptors import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ProducerInterceptor,
    ProducerInterceptors,
)
from letterhead.kip82.ranges import RESERVED, KeyRange, KeyRanges
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata
from letterhead.kip82.routing import Routing
from letterhead.kip82.serializers import HeaderSerializer, Serialized, Serializer
from letterhead.kip82.transactions import TransactionIds
from letterhead.kip82.typed import Typed
from letterhead.kip82.wrapper import MessageWrapper

if TYPE_CHECKING:
    from letterhead.kip82.clients import Consumer, Producer
    from letterhead.kip82.log import Compacted, MessageLog
    from letterhead.kip82.requests import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse

__all__ = [
    "RESERVED",
    "Audit",
    "AuditEntry",
    "AuditKeys",
    "Compacted",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerInterceptors",
    "ConsumerRecord",
    "FetchRequest",
    "FetchResponse",
    "HeaderSerializer",
    "Headers",
    "IntHeaders",
    "KeyRange",
    "KeyRanges",
    "MessageLog",
    "MessageWrapper",
    "ProduceRequest",
    "ProduceResponse",
    "Producer",
    "ProducerInterceptor",
    "ProducerInterceptors",
    "ProducerRecord",
    "RecordMetadata",
    "Routing",
    "Serialized",
    "Serializer",
    "TopicPartition",
    "TransactionIds",
    "Typed",
    "is_delete",
]

# Modules imported on first use: a program that only handles records needs neither the log nor its requests.
_LAZY = {
    **dict.fromkeys(("Consumer", "Producer"), "clients"),
    **dict.fromkeys(("Compacted", "MessageLog"), "log"),
    **dict.fromkeys(("FetchRequest", "FetchResponse", "ProduceRequest", "ProduceResponse"), "requests"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"letterhead.kip82.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
