"""Documentation of the parameters that many functions share, inserted into their docstrings by :func:`documented`.

A docstring names them in braces at the position of their entries; indented lines below are appended to the last one::

Parameters
----------
    column : Arrow array or stream
        One message per row.
    {lenient} {strict_types}
    {errors}
        Rows that cannot be written are errors, too.

The module imports nothing of the package, so that the build of the site, which reads docstrings without running the code,
inserts the same table (``docs/shared_parameters.py``).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeVar

__all__ = ["documented", "insert"]

Documented = TypeVar("Documented")

_NAMES = re.compile(r"^(?P<indent> *)(?P<names>\{\w+\}(?: \{\w+\})*)$", re.MULTILINE)

_TABLE = """\
lenient : bool, default False
    Accept everything that Kafka's Java deserializers accept, even if data is lost.

strict_types : bool, default False
    Reject unnamed type codes, if the format allows them, and values whose type is not exactly the requested type. By
    default, a type reads all values that it can represent without loss; ``int64`` also reads ``uint8``.

text_keys : bool, default False
    For formats with typed keys: return keys as text, and reject keys of other types.

limits : Limits, optional
    Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

errors : {"raise", "null", "column"}, default "raise"
    What to do with a row that cannot be read. ``"raise"`` raises the first error. ``"null"`` sets the row, or the columns
    that failed, to null; in a batch, a message with broken headers keeps its other fields, and a message with a wrong
    checksum keeps none. ``"column"`` keeps the readable parts, and adds a last column with a list of the row's errors,
    which is null for a row without errors. A value that unreadable headers might override has an error ``incomplete``.

error_column : str, default "error"
    Name of the error column.

where : Condition or str, optional
    Return only messages for which a condition on headers and fields is true, written with :func:`letterhead.col` and
    operators, or as SQL text. ``row``, and the row of an error, count all messages. Of the other messages, only headers
    in the condition are copied. A missing header is null, and a null condition selects nothing. A value that does not fit
    its type, or a message with broken headers, is an error unless fields alone exclude the message: it is raised, set to
    null with ``errors="null"``, or returned with its error with ``errors="column"``.

headers_as_columns : mapping of str to str or Field, or a schema, optional
    Headers to return as typed columns after the others: a mapping from column names to types, such as ``"int64"``, or to
    :func:`letterhead.field`. A missing header is null.

iggy_address : str
    ``iggy://user:password@host:port``, or ``iggy://token@host:port`` with a personal access token. Special characters are
    percent-encoded; the default port is 8090. ``?tls=true`` encrypts the connection; ``tls_ca_file`` is a file of trusted
    certificates, and ``tls_domain`` the name in the server's certificate if it differs from the host.

iggy_topic : str or int
    Name or number of the stream, and of the topic in the stream.

bootstrap_servers : str or sequence of str, optional
    ``host:port`` of brokers; by default ``bootstrap.servers`` of the settings.

settings : mapping or path, optional
    Connection settings by Kafka's property names, such as ``{"security.protocol": "SSL"}``, or the path of a property
    file. librdkafka's names are also accepted, and settings that tune other clients are ignored. ``${env:NAME}`` and
    ``${file:PATH}`` in a value refer to a secret that is stored elsewhere.

token_provider : callable, optional
    For ``sasl.mechanism=OAUTHBEARER``: a function without arguments that returns a token. It is called in another thread
    before a token expires; a token that is not a JSON web token is renewed every four minutes.

offsets : int, str, datetime or mapping, default "earliest" and "latest"
    Where to start and where to stop; ``end`` is exclusive. An offset, ``"earliest"``, ``"latest"``, a negative number
    (``-10`` is ten offsets before the end), or a time: a datetime with a time zone, ISO 8601 text (in UTC without a
    zone), or ``"@"`` followed by milliseconds since 1970. A time means the first row at that time or later. The value
    applies to all partitions, within their range. A mapping from partitions to values sets each partition separately; its
    offsets must exist.

read_options : items of ReadOptions
    Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
    :class:`letterhead.ReadOptions`.

parse_options : items of ParseOptions
    Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
    :class:`letterhead.ParseOptions`.

draft : {"typed", "int", "wrapper"}, default "typed"
    The draft: text keys and typed values, integer keys, or integer keys inside the value.

header_serializers : mapping of key to HeaderSerializer, optional
    Serializers for header values, by key.

key_and_value_serializers : Serializer, optional
    Serializers for keys and values that are not bytes.

header_errors : {"raise", "null"}, default "raise"
    What to do if the headers of a record are accessed but cannot be parsed: raise, or return no headers.
    ``record.headers.error`` then contains the reason.

acks : int, default -1
    When a log responds: with -1 after the messages are on disk, otherwise after they are written; see ``sync`` of
    :class:`~letterhead.kip82.MessageLog`.

now : int, optional
    Milliseconds since 1970; by default the current time.

delete_retention_ms : int, default 86,400,000
    Milliseconds for which a delete is retained.

threads : int, default 1
    Number of threads, which affects neither the result, its chunks nor errors. One chunk of a stream per thread is read
    ahead. If chunks have similar sizes, each thread processes a whole chunk, and nothing is copied between threads. The
    rows of an array, and of chunks of different sizes, are divided among the threads, and the results are copied into
    one: ``decode``, ``encode`` and ``convert`` then gain less. Fewer than 2,048 rows are processed by one thread. Use it
    for large columns on idle processors; in a Spark task, processors are not idle.

views : bool, default False
    Return text and bytes as ``string_view`` and ``binary_view``. Values of more than 12 bytes are not copied: they refer
    to the buffers of ``column``, which the result keeps in memory. Header keys and the error column are never views. Use
    it for long values in polars, DuckDB or DataFusion; Spark cannot read views, and for short values copying is faster.

types : {"be", "le", "text", "binary"} or mapping of key to type, optional
    For a format without types: how to write typed values, big-endian, little-endian or as text. For a format with types:
    the types of untyped values, ``"binary"`` or by key, such as ``{"retry": "int32", "at": "int64:le"}``, with a list for
    a repeated key. ``losses.types`` of a conversion converts back.

on_loss : {"raise", "drop", "report"}, default "raise"
    What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
    report the losses.

nulls : {"skip", "raise"}, default "skip"
    What to do with a null list of headers: write a message without headers, or raise.

canonical : bool, default False
    For ``iggy``: sort the headers like Iggy's own map.

keep : sequence of str, optional
    Columns of the DataFrame to keep, before the new columns; ``[]`` keeps none. By default, all columns that are not read
    are kept. Only columns that are kept or read are transferred to Python.

identify : sequence of str, optional
    Columns of the DataFrame that identify a row and contain nothing confidential, such as an order number. A raised error
    quotes their values, and those of ``topic``, ``partition``, ``offset`` and ``timestamp`` if these columns are kept,
    but no other values.

identify_columns : sequence of str, optional
    Columns of the DataFrame that identify a row and contain nothing confidential, such as ``["partition", "offset"]``. A
    raised error quotes their values.

only : sequence of keys, optional
    Keys of the headers to keep; by default all.

drop : sequence of keys, optional
    Keys of the headers to drop, including repeated ones.

rename : mapping of key to key, optional
    New keys by old keys, applied at once, so that two keys can be swapped. Existing headers with a new key stay.

replace : mapping of key to mask or function, optional
    New values for all headers with a key, at their positions. Null stays null, and no header is added. ``"hash"`` is the
    SHA-256 of the value in hexadecimal; ``"redact"`` is ``***``; ``"last4"`` is ``****`` and the last four characters, or
    only ``****`` if the value has fewer than eight bytes or does not end in ASCII; :func:`letterhead.hmac` is a hash with
    a secret key. bytes, a :class:`~letterhead.Value` and :func:`letterhead.lit` are constants.

set : mapping of key to value, optional
    Values of headers that occur once in the result: the first header with the key gets the value, and the others are
    dropped. If no header has the key, one is appended.

append : mapping of key to value, or sequence of pairs, optional
    Headers to append, even if the key exists; pairs can repeat a key. New headers from ``set`` precede
    new headers from ``append``, each in the order of its mapping.

ignore_case : bool, default False
    Whether ``only``, ``drop``, ``rename`` and ``replace`` ignore the case of the letters A to Z in keys.

truncate : bool, default False
    Whether to cut off digits of times and decimals that a type cannot hold: times are rounded toward the past, decimals
    toward zero. By default, such a value is an error.

values : Arrow array or stream of binary
    The values, or the keys of messages.

headers_with_ids : Arrow array or stream of binary or lists of headers, optional
    The headers of the same messages. If a message lacks the header, the id precedes its value, as for Confluent's
    deserializers.

headers_format : str, default "kafka"
    Name of the format of the headers.

id_header : str, default "__value_schema_id"
    Header with the id: ``"__key_schema_id"`` for keys; for Apicurio ``"apicurio.value.globalId"``,
    ``"apicurio.value.contentId"``, and the same with ``key``.

id_bytes : {4, 8}, optional
    Size of an id before a value: 4 as written by Confluent, or 8 as written by default by Apicurio up to version 2. The
    default is 4, or 8 if ``header`` is Apicurio's.

text_or_binary : Arrow array or stream of binary or string
    The values; null stays null.

text_or_binary_column : str or Column
    The values: string or binary; null stays null.

value_errors : {"raise", "null", "column"}, default "raise"
    What to do with invalid values: raise an error with row, byte and reason; return null; or return a struct ``value,
    error``, in which an invalid value is null and ``error`` has the same type as in the result of
    :func:`letterhead.arrow.select`.

registry : Registry
    The registry of the schemas.

columns_schema : str or mapping, optional
    Schema of the columns: JSON, or Protobuf text, whose first message type has the columns.

columns_subject : str, optional
    Subject whose latest schema has the columns. It is fetched once, when the columns are needed. Without ``schema`` and
    ``subject``, the result has the columns of all schemas in the data.

written_subject : str
    Subject of the schema, such as ``orders-value``.

written_schema : str or mapping, optional
    The schema: JSON, or Protobuf text, whose first message type is written; by default the latest schema of the subject.

schema_id : {"header", "prefix"}, default "header"
    Position of the schema id: in a header, as a GUID if the registry has one, or before each value, which older
    deserializers need.

register : bool, default False
    Register ``schema`` if the subject does not have it. The registry rejects an incompatible schema.

baggage : sequence of str, optional
    Keys of the baggage to return as attributes; by default all. Baggage may be confidential, and attributes are exported.

link_errors : {"raise", "null"}, default "raise"
    What to do with a message whose headers are damaged: raise an error, or return null. An invalid ``traceparent`` is
    always null.
"""

_RENAMED = {
    "headers_as_columns": "headers", "read_options": "options", "parse_options": "options", "draft": "header_format", "header_serializers": "serializers", "header_errors": "errors",
    "key_and_value_serializers": "key_serializer, value_serializer", "iggy_address": "address", "iggy_topic": "stream, topic",
    "offsets": "start, end", "headers_with_ids": "headers", "headers_format": "format", "id_header": "header",
    "identify_columns": "identify", "text_or_binary": "column", "text_or_binary_column": "column", "value_errors": "errors", "link_errors": "errors",
    "columns_schema": "schema", "columns_subject": "subject", "written_schema": "schema", "written_subject": "subject",
}  # fmt: skip
"""Displayed name of each parameter that has several entries."""


def documented(function: Documented) -> Documented:
    """Insert shared parameters into the docstring of the decorated function."""
    # Python removes docstrings if it runs with -OO.
    if function.__doc__:
        function.__doc__ = insert(function.__doc__)
    return function


def insert(docstring: str) -> str:
    """Return a docstring with the entries of the parameters named in braces."""
    return _NAMES.sub(_entries, docstring)


def _entries(match: re.Match[str]) -> str:
    lines = [line for name in re.findall(r"\w+", match["names"]) for line in _lines_by_name()[name]]
    return "\n".join(match["indent"] + line for line in lines)


@cache
def _lines_by_name() -> dict[str, list[str]]:
    lines = {}
    for entry in _TABLE.strip().split("\n\n"):
        name, _, rest = entry.partition(" : ")
        lines[name] = f"{_RENAMED.get(name, name)} : {rest}".split("\n")
    return lines
