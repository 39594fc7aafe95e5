"""Rows and columns to read from a source: :class:`RowRequest`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from letterhead._arrow_types import OnError
from letterhead._error_policies import NULL_COLUMN
from letterhead._names import check_name, first_repeated, names_of, unknown_argument
from letterhead._read_options import ReadOptions
from letterhead.fields import columns_of
from letterhead.limits import Limits

if TYPE_CHECKING:
    from letterhead.fields import Columns
    from letterhead.kafka.oauth import TokenProvider
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.schemas.serialized import SerializedValues
    from letterhead.state.reading.key_bounds import KeyBounds
    from letterhead.where.conditions import Where

__all__ = [
    "IGGY_TOPIC_OPTIONS", "KAFKA_CONNECTION_OPTIONS", "KAFKA_TOPIC_OPTIONS", "LOG_OPTIONS", "OPTIONS", "OPTIONS_OF_ONE_SOURCE",
    "STORE_OPTIONS", "TIMEOUT_MS", "RowRequest", "StoreOptions", "check_supported", "columns_asked", "is_committed", "row_request",
]  # fmt: skip

TIMEOUT_MS = 60_000
"""Default time limit of a request to a server, including retries, as in Kafka's clients."""


class StoreOptions(NamedTuple):
    """Stores of a directory to read, and a range of their keys."""

    name: str | None = None
    store_type: str | None = None
    value_format: str | None = None
    keys: KeyBounds | None = None
    backward: bool = False
    window_size: int | None = None


@dataclass(frozen=True)
class RowRequest:
    """Selection of rows and columns of any source, and connection options.

    ``on_screen`` selects fewer columns by default; ``among_others`` adds the columns that identify the source of a row.
    """

    columns: tuple[str, ...] | None = None
    headers: Columns | None = None
    where: Where | None = None
    start: OffsetSpec = "earliest"
    end: OffsetSpec = "latest"
    last: int | None = None
    follow: bool = False
    partitions: frozenset[int] | None = None
    committed: bool | None = None  # by default, the value in Kafka's settings
    commit_group: str | None = None
    errors: OnError = "raise"
    error_column: str = "error"
    ignore_crc: bool = False
    on_screen: bool = False
    among_others: bool = False
    limits: Limits | None = None
    timeout_ms: int | None = None  # by default, the value in Kafka's settings, or TIMEOUT_MS
    fetch_bytes: int | None = None
    batch_bytes: int | None = None
    token_provider: TokenProvider | None = None
    mapping: str | None = None  # how Iggy messages become Kafka records
    servers: str | None = None  # brokers of a Kafka topic, if its address contains none
    settings: Mapping[str, Any] | None = None
    stores: StoreOptions | None = None
    view: Literal["records", "batches", "control"] = "records"
    serialized: tuple[SerializedValues, ...] | None = None

    def __post_init__(self) -> None:
        if self.errors != NULL_COLUMN:
            check_name("errors value", self.errors, get_args(OnError))
        for name in ("follow", "ignore_crc"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be bool, not {type(getattr(self, name)).__name__}")
        for name, least in (("last", 0), ("timeout_ms", 1), ("fetch_bytes", 1), ("batch_bytes", 1)):
            _check_whole(name, getattr(self, name), least)
        if self.stores is not None:
            _check_whole("window_size", self.stores.window_size, 1)
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be letterhead.Limits, not {type(self.limits).__name__}")

    @property
    def error_options(self) -> dict[str, Any]:
        """Options of a reader for rows that cannot be read."""
        return {"errors": self.errors, "error_column": self.error_column}

    def without_headers(self, names: Iterable[str]) -> tuple[str, ...]:
        """Remove the column ``headers`` if the request has typed header columns."""
        return tuple(name for name in names if not (self.headers and name == "headers"))

    def chosen_columns(self, default: Iterable[str]) -> tuple[str, ...]:
        """Return the requested columns, or the default columns of a reader."""
        return self.without_headers(default) if self.columns is None else self.columns


_ARGUMENTS = ("columns", "headers", "where", "errors")
"""Arguments of most functions that read, in addition to :class:`~letterhead.ReadOptions`."""


_SAME_NAMES = ReadOptions.__annotations__.keys() & {field.name for field in fields(RowRequest)} - {"partitions"}
"""Options that become fields of a request unchanged."""


def _check_whole(name: str, number: int | None, least: int) -> None:
    if number is None:
        return
    if not _is_whole(number):
        raise TypeError(f"{name} must be a whole number, not {type(number).__name__}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")


def _is_whole(number: object) -> bool:
    """Return whether an argument is an integer of Python or NumPy. A bool is not."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def row_request(
    options: ReadOptions,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    settings: Mapping[str, Any] | None = None,
) -> RowRequest:
    """Return the request of a call with these arguments."""
    for name in options.keys() - ReadOptions.__annotations__.keys():
        raise unknown_argument(name, ReadOptions.__annotations__, _ARGUMENTS)
    values: Mapping[str, Any] = {**options}
    same: Any = {
        name: int(value) if _is_whole(value) else value for name, value in values.items() if name in _SAME_NAMES
    }
    return RowRequest(
        columns=columns_asked(columns, headers),
        headers=headers,
        where=where,
        start=start,
        end=end,
        errors=errors,
        settings=settings,
        partitions=_partition_numbers(options.get("partitions")),
        committed=is_committed(options.get("isolation_level")),
        stores=StoreOptions(
            options.get("store"),
            options.get("store_type"),
            options.get("values"),
            window_size=options.get("window_size"),
        ),
        **same,
    )


def columns_asked(columns: Sequence[str] | None, headers: Columns | None) -> tuple[str, ...] | None:
    """Return the column names of a call.

    Raise ValueError for an empty list without typed headers, which would return no rows, for empty headers, and for a
    repeated name.
    """
    names = names_of(columns)
    if (names == () and not headers) or (headers is not None and not columns_of(headers)):
        raise ValueError("no columns were asked for")
    repeated = first_repeated(names or ())
    if repeated is not None:
        raise ValueError(f"two columns {repeated!r} would be made: name it once in columns=")
    return names


def _partition_numbers(partitions: Iterable[int] | None) -> frozenset[int] | None:
    if partitions is None:
        return None
    numbers = [*partitions] if isinstance(partitions, Iterable) else [None]
    if not all(map(_is_whole, numbers)):
        raise TypeError("partitions must be a list of whole numbers, such as [0, 1]")
    if not numbers:
        raise ValueError("no partitions were asked for")
    return frozenset(map(int, numbers))


def is_committed(isolation_level: str | None) -> bool | None:
    """Return whether only committed records are read; None if Kafka's settings determine this."""
    if isolation_level is None:
        return None
    check_name("isolation_level", isolation_level, ("read_uncommitted", "read_committed"))
    return isolation_level == "read_committed"


_LOGS = "topics and log segments"

OPTIONS: Mapping[str, tuple[str, str]] = {
    "start": ("start=", _LOGS),
    "end": ("end=", _LOGS),
    "partitions": ("partitions=", _LOGS),
    "follow": ("follow=", "topics"),
    "timeout_ms": ("timeout_ms=", "topics"),
    "fetch_bytes": ("fetch_bytes=", "topics"),
    "batch_bytes": ("batch_bytes=", "topics of Kafka"),
    "token_provider": ("token_provider=", "topics of Kafka"),
    "settings": ("settings=", "topics of Kafka"),
    "commit_group": ("commit_group=", "topics of Kafka"),
    "committed": ("isolation_level=", f"{_LOGS} of Kafka"),
    "view": ("{view}=", f"{_LOGS} of Kafka"),
    "ignore_crc": ("ignore_crc=", "records of log segments of Kafka"),
    "mapping": ("mapping=", "topics of Iggy"),
    "stores": ("store= and the options of its keys", "state directories"),
    "serialized": ("value=", _LOGS),
}
"""Request fields that not every source supports: the parameter named in errors, and the sources that support it."""

LOG_OPTIONS = frozenset({"start", "end", "partitions", "serialized"})
KAFKA_CONNECTION_OPTIONS = frozenset({"settings", "token_provider", "timeout_ms", "fetch_bytes"})
KAFKA_TOPIC_OPTIONS = LOG_OPTIONS | KAFKA_CONNECTION_OPTIONS | {
    "batch_bytes", "follow", "commit_group", "committed", "view",
}  # fmt: skip
IGGY_TOPIC_OPTIONS = LOG_OPTIONS | {"follow", "timeout_ms", "fetch_bytes", "mapping"}
STORE_OPTIONS = frozenset({"stores"})
OPTIONS_OF_ONE_SOURCE = STORE_OPTIONS | KAFKA_CONNECTION_OPTIONS | {"batch_bytes", "committed", "mapping"}
"""Options that at least one of several sources must support, and that the others ignore."""


def check_supported(name: str, supported: Iterable[str], request: RowRequest) -> None:
    """Raise ValueError if a request has an option that the named source does not support."""
    for field, (parameter, kinds) in OPTIONS.items():
        value = getattr(request, field)
        if value not in _UNSET.get(field, (_DEFAULTS[field],)) and field not in supported:
            verb = "are" if " and " in parameter else "is"
            raise ValueError(f"{parameter.format(view=value)} {verb} for {kinds}, not for {name}")


_DEFAULTS = {field.name: field.default for field in fields(RowRequest)}

_UNSET: Any = {"settings": (None, {}), "stores": (None, StoreOptions()), "committed": (None, False)}
