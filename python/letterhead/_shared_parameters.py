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
    Read what Kafka's Java deserializers read, even where that loses data.

strict_types : bool, default False
    Reject type codes without a name where the format allows them, and values whose type is not exactly the requested one.
    By default a type reads all values that fit without loss, such as ``int64`` an ``uint8``.

text_keys : bool, default False
    For formats with typed keys: return keys as text, and reject keys of another type.

limits : Limits, optional
    The most to read. Unset limits use the process-wide defaults, see :class:`letterhead.Limits`.

errors : {"raise", "null", "column"}, default "raise"
    What to do with a row that cannot be read. ``"raise"`` raises the first error. ``"null"`` returns null for the row, or
    for the columns that failed; a message of a batch whose headers are broken keeps its other fields, and one with a
    wrong checksum none. ``"column"`` keeps what could be read, and adds a last column that lists the errors of the row; it
    is null for a row without errors. A value that headers after the break of a message may replace is marked by an error
    ``incomplete``.

error_column : str, default "error"
    Name of the column of errors.

where : Condition or str, optional
    Return only the messages for which a condition on headers and fields is true: :func:`letterhead.col` and operators, or
    SQL text. ``row`` and the row of an error count all messages. Headers that are not part of the condition are not copied
    for the others. A header that is missing is null, and a condition that is null selects nothing. A value that is not of
    its type, or a message whose headers are broken, is an error unless fields alone exclude the message: it is raised, null
    with ``errors="null"``, and returned with its error with ``errors="column"``.

headers_as_columns : mapping of str to str or Field, or a schema, optional
    Headers to return as typed columns after the others: the name of a column to a type, such as ``"int64"``, or to a
    :func:`letterhead.field`. A header that is missing is null.

iggy_address : str
    ``iggy://user:password@host:port``, or ``iggy://token@host:port`` with a personal access token. Special characters are
    percent-encoded; the port is 8090 by default. ``?tls=true`` encrypts the connection; ``tls_ca_file`` is a file of trusted
    certificates, and ``tls_domain`` the name in the server's certificate, if it is not the host.

iggy_topic : str or int
    Name or number of the stream, and of the topic in it.

bootstrap_servers : str or sequence of str, optional
    ``host:port`` of brokers; by default ``bootstrap.servers`` of the settings.

settings : mapping or path, optional
    Connection settings by Kafka's property names, such as ``{"security.protocol": "SSL"}``, or the path of a property file.
    Names of librdkafka are accepted, too, and settings that tune other clients are ignored. ``${env:NAME}`` and
    ``${file:PATH}`` in a value stand for a secret that is stored elsewhere.

token_provider : callable, optional
    For ``sasl.mechanism=OAUTHBEARER``: a function without arguments that returns a token. It is called in another thread
    before a token expires; a token that is not a JSON web token is renewed every four minutes.

offsets : int, str, datetime or mapping, default "earliest" and "latest"
    Where to begin, and where to stop; the row at ``end`` is not read. An offset, ``"earliest"``, ``"latest"``, a negative
    number (``-10``: ten offsets before the end), or a time: a datetime with its time zone, ISO 8601 text in UTC unless it
    names a zone, or ``"@"`` with milliseconds since 1970. A time stands for the first row that is not older. All partitions
    use it, as far as they reach. A mapping of partition to one of these sets every partition separately; its offsets must
    exist.

read_options : items of ReadOptions
    Further options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see :class:`letterhead.ReadOptions`.

draft : {"typed", "int", "wrapper"}, default "typed"
    The draft: text keys and typed values; integer keys; or integer keys inside the value.

header_serializers : mapping of key to HeaderSerializer, optional
    Serializers for header values, by key.

key_and_value_serializers : Serializer, optional
    Serializers for keys and values that are not bytes.

header_errors : {"raise", "null"}, default "raise"
    What accessing the headers of a record does if they cannot be parsed: raise, or read them as no headers.
    ``record.headers.error`` then has the reason.

acks : int, default -1
    When a log answers: with -1, once the messages are on disk, otherwise once they are written, see ``sync`` of
    :class:`~letterhead.kip82.MessageLog`.

now : int, optional
    Milliseconds since 1970; by default the current time.

delete_retention_ms : int, default 86,400,000
    Milliseconds for which a delete is kept.

threads : int, default 1
    Number of threads. It changes neither the result and its chunks nor the error. Of a stream, one chunk per thread is read
    ahead. If these are of similar size, each thread works on a whole chunk, and nothing is copied between threads. The
    rows of an array, and of chunks of different sizes, are shared by the threads, which copy their results into one:
    ``decode``, ``encode`` and ``convert`` then gain less. Fewer than 2,048 rows are left to one thread. Use it for large
    columns where processors are idle, which they are not in a Spark task.

views : bool, default False
    Return text and bytes as ``string_view`` and ``binary_view``. Values of more than 12 bytes refer to the buffers of
    ``column``, which the result keeps in memory, and are not copied. Keys of headers and the column of errors are never
    views. Use it for long values that go to polars, DuckDB or DataFusion: Spark does not read views, and short values are
    read faster without.

types : {"be", "le", "text", "binary"} or mapping of key to type, optional
    For a format without types, how a typed value is written: big-endian, little-endian, or as text. For a format with
    types, the types of untyped values: ``"binary"``, or by key, ``{"retry": "int32", "at": "int64:le"}``, with a list for
    a key that occurs more than once. ``losses.types`` of a conversion can be passed to convert back.

on_loss : {"raise", "drop", "report"}, default "raise"
    What to do if the format cannot carry something: raise; write the nearest value, or leave it out; or do the latter and
    report the losses.

nulls : {"skip", "raise"}, default "skip"
    What to do with null headers: write a message without headers, or raise.

canonical : bool, default False
    For ``iggy``: sort the headers as Iggy's own map does.

keep : sequence of str, optional
    Columns of the frame to keep, in front of the new ones; ``[]`` keeps none. By default all columns that are not read.
    Only the columns kept and read are transferred to Python.

identify : sequence of str, optional
    Columns of the frame that identify a row and contain nothing confidential, such as an order number. A raised error
    quotes their values, and those of ``topic``, ``partition``, ``offset`` and ``timestamp`` if they are kept; it quotes
    no other values.

identify_columns : sequence of str, optional
    Columns of the frame that identify a row and contain nothing confidential, such as ``["partition", "offset"]``. A raised
    error quotes their values.

only : sequence of keys, optional
    Keys of the headers to keep; by default all.

drop : sequence of keys, optional
    Keys of the headers to drop, all of them.

rename : mapping of key to key, optional
    Old key to new, all at once, so that two can be swapped. Other headers of the new key stay.

replace : mapping of key to mask or function, optional
    New values of the headers that have a key, all of them, where they stand. Null stays null, and a message without the
    header stays without. ``"hash"`` is the SHA-256 of the value in hexadecimal; ``"redact"`` is ``***``; ``"last4"`` is
    ``****`` and the last four characters, or only ``****`` if the value has fewer than eight bytes or does not end in
    ASCII; :func:`letterhead.hmac` is a hash with a secret key. bytes, a :class:`~letterhead.Value` and :func:`letterhead.lit` are constants.

set : mapping of key to value, optional
    Values of headers of which there is one afterwards: the first of the key gets the value, and the others are dropped.
    Without any, one is appended.

append : mapping of key to value, or sequence of pairs, optional
    Headers to append, whether or not there are others of the key; pairs can repeat a key. New headers are in this order: those
    of ``set``, then those of ``append``, each in the order of its mapping.

ignore_case : bool, default False
    Whether ``only``, ``drop``, ``rename`` and ``replace`` find keys without regard to the case of the letters A to Z.

truncate : bool, default False
    Whether digits of times and decimals that a type does not have are cut off: of times toward the past, of decimals toward
    zero. By default such a value is an error.

values : Arrow array or stream of binary
    The values, or the keys of messages.

headers_with_ids : Arrow array or stream of binary or lists of headers, optional
    The headers of the same messages. A message without the header has its id in front of its value, as for Confluent's
    deserializers.

headers_format : str, default "kafka"
    Name of the format of the headers.

id_header : str, default "__value_schema_id"
    Header that has the id: ``"__key_schema_id"`` for keys; of Apicurio ``"apicurio.value.globalId"``,
    ``"apicurio.value.contentId"``, and the same with ``key``.

id_bytes : {4, 8}, optional
    Size of an id in front of a value: 4 as Confluent writes it, or 8 as Apicurio does by default up to version 2. By default 4, and
    8 if ``header`` is one of Apicurio.

text_or_binary : Arrow array or stream of binary or string
    The values; null stays null.

text_or_binary_column : str or Column
    The values: string or binary; null stays null.

value_errors : {"raise", "null", "column"}, default "raise"
    What to do with invalid values: raise an error with row, byte and reason; return null; or return a struct ``value,
    error`` with null as the value, where ``error`` has the type as in the result of :func:`letterhead.arrow.select`.

registry : Registry
    The registry of the schemas.

columns_schema : str or mapping, optional
    Schema of the columns: JSON, or text of Protobuf, whose first message type has the columns.

columns_subject : str, optional
    Subject whose latest schema has the columns. It is fetched once, when the columns are needed. Without ``schema`` and
    ``subject``, the columns of all schemas in the data.

written_subject : str
    Subject of the schema, such as ``orders-value``.

written_schema : str or mapping, optional
    The schema: JSON, or text of Protobuf, whose first message type is written; by default the latest one of the subject.

schema_id : {"header", "prefix"}, default "header"
    Where the id of the schema is: in a header, as GUID if the registry has one, or in front of each value, which older
    deserializers need.

register : bool, default False
    Register ``schema`` if the subject does not have it. The registry rejects an incompatible schema.

baggage : sequence of str, optional
    Keys of the baggage to return as attributes; by default all. Baggage may be confidential, and attributes are exported.

link_errors : {"raise", "null"}, default "raise"
    What to do with a message whose headers are damaged: raise an error, or return null. An invalid ``traceparent`` is null
    and never an error.
"""

_RENAMED = {
    "headers_as_columns": "headers", "read_options": "options", "draft": "header_format", "header_serializers": "serializers", "header_errors": "errors",
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
