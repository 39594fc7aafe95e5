"""Read and write the headers of messages: Kafka's, Kafka Streams' and Iggy's.

The same verbs serve one message (this module), columns (:mod:`letterhead.arrow`) and Spark (:mod:`letterhead.spark`).

Examples
--------
>>> import letterhead as lh
>>> data = lh.encode([("tenant", "acme"), ("route", "a"), ("route", "b")], "kafka")
>>> lh.decode(data, "kafka").all("route")
[b'a', b'b']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from letterhead import errors
from letterhead.columns import All, Field, field
from letterhead.envelope import Envelope
from letterhead.errors import ConversionError, DecodeError, EncodeError, HeaderError
from letterhead.headers import FrozenHeaders, Header, Headers
from letterhead.message import decode, encode, inspect, select, validate
from letterhead.values import (
    Binary,
    Bool,
    Char,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    String,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    Value,
)

if TYPE_CHECKING:
    from letterhead import arrow as arrow
    from letterhead import spark as spark

__all__ = [
    "All",
    "Binary",
    "Bool",
    "Char",
    "ConversionError",
    "DecodeError",
    "EncodeError",
    "Envelope",
    "Field",
    "Float32",
    "Float64",
    "FrozenHeaders",
    "Header",
    "HeaderError",
    "Headers",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "String",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "Value",
    "decode",
    "encode",
    "errors",
    "field",
    "inspect",
    "select",
    "validate",
]

# Imported when first asked for: they bring pyarrow and pyspark, which not everyone who reads one header has.
_LAZY = ("arrow", "spark")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"letterhead.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
