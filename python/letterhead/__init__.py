"""Read and write message headers of Kafka, Kafka Streams and Apache Iggy.

The same functions exist for one message (this module), columns (:mod:`letterhead.arrow`) and Spark
(:mod:`letterhead.spark`).

Examples
--------
>>> import letterhead as lh
>>> data = lh.encode([("tenant", "acme"), ("route", "a"), ("route", "b")], "kafka")
>>> lh.decode(data, "kafka").get_all("route")
[b'a', b'b']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from letterhead import conventions, errors
from letterhead._header_edits import hmac, lit
from letterhead._parse_options import ParseOptions
from letterhead._read_options import ReadOptions
from letterhead.conventions import profile
from letterhead.conventions.spring import spring_columns
from letterhead.errors import ConversionError, DecodeError, EncodeError, HeaderError, LetterheadError
from letterhead.fields import Field, field
from letterhead.headers import FrozenHeaders, Header, Headers
from letterhead.limits import Limits
from letterhead.message import Message
from letterhead.one_message import batch, convert, decode, encode, inspect, messages, select, validate
from letterhead.results import Converted, Loss, Losses
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
from letterhead.where.conditions import col

if TYPE_CHECKING:
    from letterhead import arrow as arrow
    from letterhead import iggy as iggy
    from letterhead import kip82 as kip82
    from letterhead import read as read
    from letterhead import schemas as schemas
    from letterhead import spark as spark
    from letterhead import state as state
    from letterhead import testing as testing
    from letterhead import where as where
    from letterhead import write as write
    from letterhead._native import __version__ as __version__
    from letterhead.copies.copy import copy as copy
    from letterhead.sources.comparison import diff as diff
    from letterhead.sources.opening import open as open

# `open` is not listed, because `from letterhead import *` would then replace the built-in function.
__all__ = [
    "Binary",
    "Bool",
    "Char",
    "ConversionError",
    "Converted",
    "DecodeError",
    "EncodeError",
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
    "LetterheadError",
    "Limits",
    "Loss",
    "Losses",
    "Message",
    "ParseOptions",
    "ReadOptions",
    "String",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "Value",
    "batch",
    "col",
    "conventions",
    "convert",
    "copy",
    "decode",
    "diff",
    "encode",
    "errors",
    "field",
    "hmac",
    "inspect",
    "lit",
    "messages",
    "profile",
    "select",
    "spring_columns",
    "validate",
]

# Imported on first use: they need pyarrow or pyspark, which may be missing in a program that decodes single messages.
_LAZY = ("arrow", "iggy", "kip82", "read", "schemas", "spark", "state", "testing", "where", "write")
_LAZY_NAMES = {
    "__version__": "letterhead._native",
    "copy": "letterhead.copies.copy",
    "diff": "letterhead.sources.comparison",
    "open": "letterhead.sources.opening",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"letterhead.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(_LAZY_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, *_LAZY_NAMES})
