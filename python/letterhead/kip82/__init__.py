"""The drafts of KIP-82 as their authors meant them: clients, interceptors and a log that were never released.

The byte work is that of the formats ``kip82-typed``, ``kip82-int``, ``kip82-wrapper`` and the messages around them;
here are the classes that the drafts name, in Python's spelling. A ``layout`` says which draft is meant: ``"typed"`` has
text keys and values with types, ``"int"`` integer keys, ``"wrapper"`` integer keys inside the value of a message.

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

from letterhead.errors import Damage, DamagedLogError, LogClosedError, LogLockedError, MessageLogError, RequestError
from letterhead.kip82.audit import Audit, AuditEntry, AuditKeys
from letterhead.kip82.headers import Headers
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.interceptors import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ProducerInterceptor,
    ProducerInterceptors,
)
from letterhead.kip82.ranges import RESERVED, KeyRange, KeyRanges
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata, TopicPartition
from letterhead.kip82.routing import Routing
from letterhead.kip82.serializers import HeaderSerializer, Serialized, Serializer
from letterhead.kip82.transactions import TransactionIds
from letterhead.kip82.typed import Typed
from letterhead.kip82.wrapper import MessageWrapper

if TYPE_CHECKING:
    from letterhead.kip82.clients import Consumer as Consumer
    from letterhead.kip82.clients import Producer as Producer
    from letterhead.kip82.compaction import DELETE_RETENTION_MS as DELETE_RETENTION_MS
    from letterhead.kip82.compaction import delete_horizon as delete_horizon
    from letterhead.kip82.compaction import is_delete as is_delete
    from letterhead.kip82.compaction import latest_offsets as latest_offsets
    from letterhead.kip82.compaction import should_retain as should_retain
    from letterhead.kip82.fetch import AskedPartition as AskedPartition
    from letterhead.kip82.fetch import FetchedPartition as FetchedPartition
    from letterhead.kip82.fetch import FetchRequest as FetchRequest
    from letterhead.kip82.fetch import FetchResponse as FetchResponse
    from letterhead.kip82.log import Compacted as Compacted
    from letterhead.kip82.log import MessageLog as MessageLog
    from letterhead.kip82.produce import ProducedPartition as ProducedPartition
    from letterhead.kip82.produce import ProduceRequest as ProduceRequest
    from letterhead.kip82.produce import ProduceResponse as ProduceResponse
    from letterhead.kip82.produce import SentPartition as SentPartition
    from letterhead.kip82.requests import ErrorCode as ErrorCode
    from letterhead.kip82.requests import Topic as Topic
    from letterhead.kip82.versions import convert_down as convert_down
    from letterhead.kip82.versions import convert_up as convert_up

__all__ = [
    "DELETE_RETENTION_MS",
    "RESERVED",
    "AskedPartition",
    "Audit",
    "AuditEntry",
    "AuditKeys",
    "Compacted",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerInterceptors",
    "ConsumerRecord",
    "Damage",
    "DamagedLogError",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "FetchedPartition",
    "HeaderSerializer",
    "Headers",
    "IntHeaders",
    "KeyRange",
    "KeyRanges",
    "LogClosedError",
    "LogLockedError",
    "MessageLog",
    "MessageLogError",
    "MessageWrapper",
    "ProduceRequest",
    "ProduceResponse",
    "ProducedPartition",
    "Producer",
    "ProducerInterceptor",
    "ProducerInterceptors",
    "ProducerRecord",
    "RecordMetadata",
    "RequestError",
    "Routing",
    "SentPartition",
    "Serialized",
    "Serializer",
    "Topic",
    "TopicPartition",
    "TransactionIds",
    "Typed",
    "convert_down",
    "convert_up",
    "delete_horizon",
    "is_delete",
    "latest_offsets",
    "should_retain",
]

# The log and its requests, imported when first asked for: who only reads a header needs neither files nor locks.
_LAZY = {
    name: module
    for module, names in {
        "clients": ("Consumer", "Producer"),
        "compaction": ("DELETE_RETENTION_MS", "delete_horizon", "is_delete", "latest_offsets", "should_retain"),
        "fetch": ("AskedPartition", "FetchRequest", "FetchResponse", "FetchedPartition"),
        "log": ("Compacted", "MessageLog"),
        "produce": ("ProduceRequest", "ProduceResponse", "ProducedPartition", "SentPartition"),
        "requests": ("ErrorCode", "Topic"),
        "versions": ("convert_down", "convert_up"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"letterhead.kip82.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
