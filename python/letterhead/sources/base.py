"""Source of rows: :class:`Source`, and the options that each type of source supports."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import quote

from letterhead._row_request import OPTIONS_OF_ONE_SOURCE, RowRequest, check_supported
from letterhead._warnings import warn
from letterhead.errors import TruncatedTailWarning, UnseenHeaderWarning
from letterhead.sources.unseen_names import UnseenNames
from letterhead.values import value_from_message
from letterhead.where.conditions import EVERY, Predicate, all_of, col, parts_of
from letterhead.where.parsing import as_condition

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.fields import ColumnSpec, NativeKey
    from letterhead.kafka.internal_topics import InternalTopic
    from letterhead.reader import Progress, Reader
    from letterhead.where.conditions import Condition

__all__ = ["Findings", "LogSource", "Logins", "Source", "check_options"]

BATCH_SCREEN_COLUMNS = ("base_offset", "last_offset", "records", "bytes", "codec", "checksum")


class Findings(NamedTuple):
    """Remarks about the rows read, and whether the data has errors."""

    remarks: Sequence[str] = ()
    has_errors: bool = False


BROKERS_REMEDY = "pass kafka://host:port/topic"


class Logins:
    """Provides users and passwords that are missing in addresses and settings."""

    brokers_remedy = BROKERS_REMEDY

    def kafka_settings(self, settings: Mapping[str, Any], *, has_servers: bool) -> dict[str, Any]:
        """Return connection settings; ``has_servers`` states whether the address contains brokers."""
        if not has_servers and not settings.keys() & {"bootstrap.servers", "metadata.broker.list"}:
            from letterhead.kafka.settings import check_names

            check_names(settings)
            raise ValueError(f"no brokers are named: {self.brokers_remedy}, or set bootstrap.servers")
        return dict(settings)

    def iggy_login(self) -> str:
        """Return Iggy credentials in the syntax of an address, a token or user:password, from the environment."""
        token = os.environ.get("IGGY_TOKEN")
        if token:
            return quote(token, safe="")
        user, password = os.environ.get("IGGY_USERNAME"), os.environ.get("IGGY_PASSWORD")
        user, password = self.complete(user, password)
        return f"{quote(user, safe='')}:{quote(password, safe='')}"

    def complete(self, user: str | None, password: str | None) -> tuple[str, str]:
        """Return a user and a password; raise ValueError if one is missing."""
        if not (user and password):
            raise ValueError("no login is known: set IGGY_USERNAME and IGGY_PASSWORD, or IGGY_TOKEN")
        return user, password


class Source(ABC):
    """Source of rows, opened when the first row is read."""

    noun: ClassVar[str] = "row"
    """Noun for counts of rows."""

    options: ClassVar[frozenset[str]] = frozenset()
    """The options in :data:`letterhead._row_request.OPTIONS` that the source supports; all other fields of a request apply to every source."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.unseen_names: list[str] = []
        """Remarks about names of headers that no row had, if the caller reports findings."""

    @abstractmethod
    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""

    @abstractmethod
    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return the default columns of a request."""

    def chosen_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return the columns of a request, or the default columns."""
        return self.default_columns(request) if request.columns is None else request.columns

    def reader(self, request: RowRequest) -> Reader:
        """Return a stream of the requested rows; at its end it reports names of headers that no row has."""
        reader = self.read_rows(request)
        if (request.headers or request.where is not None) and not request.follow:
            report = self.unseen_names.append if self.reports_findings else _warn_of_header
            reader._observer = UnseenNames(self, request, report)
        return reader

    def schema(self, request: RowRequest) -> pa.Schema:
        """Return the schema of the requested rows without reading them."""
        with self.read_rows(request) as reader:
            return reader.schema

    @abstractmethod
    def read_rows(self, request: RowRequest) -> Reader:
        """Return a stream of the requested rows."""

    def decodes(self, request: RowRequest) -> bool:
        """Return whether the request decodes rows; ``errors`` applies only then."""
        return True

    @abstractmethod
    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return the header keys in the condition that no row has, after all rows were read.

        ``has_selected`` tells whether the condition was true for any row.
        """

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions, once the source is open."""
        return ()

    @property
    def rows(self) -> int | None:
        """Number of rows, if known before reading."""
        return None

    unit: str = "byte"
    """The unit of :attr:`total` and :attr:`done`."""

    @property
    def total(self) -> int | None:
        """Total size of the source; None if unknown."""
        return None

    @property
    def done(self) -> int:
        """Amount read so far."""
        return 0

    reports_findings = False
    """Whether the caller reports :meth:`findings`. Otherwise unreachable rows cause an error of the reader."""

    def findings(self) -> Findings:
        """Return the findings after reading."""
        return Findings()


def check_options(sources: Sequence[Source], request: RowRequest) -> None:
    """Raise if any of the sources does not support an option of a request."""
    of_others = frozenset[str]().union(*(source.options for source in sources)) & OPTIONS_OF_ONE_SOURCE
    for source in sources:
        check_supported(source.name, source.options | of_others, request)
    if request.ignore_crc and request.view == "batches":
        raise ValueError("ignore_crc= is for records of log segments of Kafka: leave out batches=")


class LogSource(Source):
    """Partitions with offsets: a topic, or log segments."""

    _progress: Progress | None = None
    when_connected: Callable[[int], object] | None = None
    """Callback with the number of partitions, once a server has returned their first and last offsets."""

    def followed(self, reader: Reader) -> Reader:
        """Report the progress of a reader as the progress of this source; return the reader."""
        progress: Any = reader._progress
        if progress is not None:
            self._progress = progress
            progress.when_connected = self.when_connected
        return reader

    @property
    def total(self) -> int | None:
        """Size of the requested range."""
        return self._progress.total if self._progress else None

    @property
    def done(self) -> int:
        """Amount read of the range."""
        return self._progress.done if self._progress else 0

    def findings(self) -> Findings:
        """Return findings about requested offsets that were deleted."""
        return Findings(getattr(self._progress, "remarks", ()))

    screen_columns: tuple[str, ...]
    """Default columns for a terminal."""

    partition_columns: tuple[str, ...] = ("partition",)
    """Columns that distinguish rows of several partitions."""

    source_columns: tuple[str, ...] = ("topic", "partition")
    """Columns that distinguish rows of several sources."""

    internal: InternalTopic | None = None
    """Decoder of records, for an internal topic of Kafka."""

    @property
    @abstractmethod
    def where_fields(self) -> Mapping[str, str]:
        """Field names for conditions, with their types."""

    def _condition_fields(self, request: RowRequest) -> Mapping[str, str]:
        return self.where_fields

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions."""
        return self.where_fields

    def read_rows(self, request: RowRequest) -> Reader:
        """Return a stream of the rows."""
        request = replace(request, columns=self.chosen_columns(request))
        if request.serialized is not None:
            from letterhead.schemas.streams import SerializedColumn
            from letterhead.sources.value_rows import value_reader

            if self.internal is not None or request.view != "records":
                raise ValueError("value= is for the records of a topic that is not internal")
            parts = []
            for serialized in request.serialized:
                _, headers, format = self._serialized_column(request)
                name = self._part_column(serialized.part, request)
                if serialized.part == "key" and "key" not in self.columns(request):
                    raise ValueError(f"key= is for records of Kafka, not for {self.name}")
                parts.append((serialized, SerializedColumn(name, headers, format)))
            fields = self._condition_fields(request)
            return value_reader(parts, self.topic_name, request, fields, self.open_records)
        if self.internal is None or not self._is_decoded(request):
            return self.open_records(request)
        from letterhead.sources.internal_rows import internal_reader

        return internal_reader(self.internal, request, self.open_records)

    def _part_column(self, part: str, request: RowRequest) -> str:
        return "key" if part == "key" else self._serialized_column(request)[0]

    def _is_decoded(self, request: RowRequest) -> bool:
        """Return whether a request for an internal topic needs decoded records."""
        names = set(request.columns or ())
        return request.view == "records" and (request.where is not None or not names <= {*self.record_columns})

    @property
    def topic_name(self) -> str | None:
        """Name of the topic of all records, if known."""
        return None

    def _serialized_column(self, request: RowRequest) -> tuple[str, str, str]:
        """Return the names of the value and header columns, and the format of the headers."""
        return "value", "headers", "kafka"

    @abstractmethod
    def open_records(self, request: RowRequest) -> Reader:
        """Return a stream of the undecoded records or batches."""

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns: fields, headers, and columns of an internal topic."""
        decoded = self.internal.schema.names if self.internal is not None and request.view == "records" else ()
        of_view = self._view_columns(request) if request.view == "control" else ()
        return dict.fromkeys([*self._condition_fields(request), "headers", *decoded, *of_view])

    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return the headers of the condition that no record has; a search stops at the first record with the header."""
        if self.internal is not None:
            return []
        from letterhead.where.program import resolve

        tested = request.where
        if tested is not None and request.serialized is not None:
            from letterhead.sources.value_rows import stored_tests

            tested = stored_tests(tested, [self._part_column(part.part, request) for part in request.serialized])
        fields = self._condition_fields(request)
        where = resolve(tested, fields, request.headers)
        if tested is None or where is None or not where.headers:
            return []
        probed = replace(request, columns=("offset",), headers=None, commit_group=None, serialized=None)
        # If values are decoded, tests of decoded columns were removed, and the remaining tests need not form a
        # conjunction.
        whole = [] if request.serialized is not None else parts_of(as_condition(tested))
        parts = [(part, _headers_of(part, fields, request)) for part in whole]
        # Rows that conditions on fields exclude were not read, and may be damaged.
        read = [part for part, headers in parts if not headers]
        # A selected record satisfies all parts, so it has the headers that they test, except in tests for null.
        needed = [headers for part, headers in parts if isinstance(part, Predicate) and part.name != "is_null"]
        seen = {spec.key for headers in needed for spec in headers} if has_selected else set()
        # The search uses a copy of the source, because it would replace the findings about the rows.
        source = copy(self)

        def has_rows(*conditions: Condition) -> bool:
            with source.read_rows(replace(probed, where=all_of([*conditions, *read]))) as reader:
                return any(len(batch) for batch in reader)

        # Reading stops at the first record with a header. An untyped key named like a field would select the field.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncatedTailWarning)
            unseen = [
                spec.key
                for spec in where.headers
                if spec.type != EVERY and spec.key not in seen and not has_rows(col(_key_of(spec), "binary").exists())
            ]
            return unseen if unseen and has_rows() else []

    @property
    @abstractmethod
    def record_columns(self) -> tuple[str, ...]:
        """Columns of a record."""

    @abstractmethod
    def partition_numbers(self, request: RowRequest) -> list[int]:
        """Return the partitions, from a server or the files."""

    @abstractmethod
    def has_several(self, request: RowRequest) -> bool:
        """Return whether the request covers several partitions, as far as known before reading."""

    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return all columns, or the columns for a terminal with the columns that distinguish partitions."""
        internal = self.internal if request.view == "records" else None
        if not request.on_screen:
            if internal is not None:
                from letterhead.sources.internal_rows import PLACE

                return (*PLACE, *internal.schema.names)
            return self._view_columns(request)
        columns: tuple[str, ...] = self.screen_columns
        if internal is not None:
            columns = ("timestamp", *internal.screen_columns)
        if request.view == "batches":
            columns = BATCH_SCREEN_COLUMNS
        if request.view == "control":
            columns = (*columns[:-3], "control", "aborted", *columns[-3:])
        if request.among_others:
            columns = (*self.source_columns, *columns)
        elif self.has_several(request):
            columns = (*self.partition_columns, *columns)
        return request.without_headers(columns)

    def _view_columns(self, request: RowRequest) -> tuple[str, ...]:
        return request.without_headers(self.record_columns)


def _warn_of_header(remark: str) -> None:
    warn(remark, UnseenHeaderWarning)


def _key_of(spec: ColumnSpec) -> Any:
    return value_from_message(*spec.key) if isinstance(spec.key, tuple) else spec.key


def _headers_of(part: Condition, fields: Mapping[str, str], request: RowRequest) -> Sequence[ColumnSpec]:
    """Return the headers that a part of a condition tests."""
    from letterhead.where.program import resolve

    where = resolve(part, fields, request.headers)
    return () if where is None else where.headers
