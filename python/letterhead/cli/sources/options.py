"""Options for the rows to read of a source, and for the connection: :func:`selection`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from letterhead import conventions
from letterhead._header_text import TypedHeader, columns_from_text, parse_header_text
from letterhead._row_request import TIMEOUT_MS, RowRequest, StoreOptions
from letterhead._times import is_relative, read_iso_time
from letterhead.cli.brokers import connection_settings
from letterhead.cli.completion import complete_stores
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import Where, flag, group_options, option
from letterhead.cli.render import SETTINGS
from letterhead.offsets.specs import OffsetSpec
from letterhead.where import parse

__all__ = [
    "BootstrapServer", "KeyRangeOptions", "Timeout", "as_milliseconds", "check_unused", "header_columns", "key_range", "partition_numbers", "points", "selection",
    "parse_headers",
]  # fmt: skip

_CONNECTION = "Connection"
_STORES = "State stores"
MAX_PARTITIONS = 100_000
"""Limit of a range of partitions; a larger one is a mistake."""

RecordMapping = StrEnum("RecordMapping", ["kafka-gateway", "kafka-gateway-lossless"])

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PARTITION_POINT = re.compile(r"(\d+)=(.+)")

Timeout = Annotated[
    float | None,
    option(
        "--timeout",
        f"How long a request may take, with connection and retries; by default {TIMEOUT_MS // 1000}.",
        "SECONDS",
        min=0.001,
        rich_help_panel=_CONNECTION,
    ),
]

BootstrapServer = Annotated[
    str | None,
    option(
        "--bootstrap-server -b",
        "Kafka brokers; the source is then the name of a topic.",
        "HOST:PORT",
        rich_help_panel=_CONNECTION,
    ),
]


@group_options(settings=connection_settings)
def selection(
    *,
    start: Annotated[
        str,
        option(
            "--start",
            "The first record: an offset, a time, -N for N before the end, group:NAME for the offsets that a consumer group "
            "committed; or 0=POINT,1=POINT.",
            "POINT",
        ),
    ] = "earliest",
    end: Annotated[str, option("--end", "Stop before this record; same forms as --start.", "POINT")] = "latest",
    last: Annotated[
        int | None, option("--last", "Only the last N selected records of each partition.", "N", min=0)
    ] = None,
    partition: Annotated[
        list[str] | None, option("--partition -p", "Only these partitions, as in 0,3-5.", "NUMBERS")
    ] = None,
    where: Where = None,
    committed: Annotated[
        bool, flag("--committed", "Skip aborted transactions, and stop at the first open one.")
    ] = False,
    store: Annotated[
        str | None, option("--store -s", "The name of the store in a state directory.", "NAME", autocompletion=complete_stores, rich_help_panel=_STORES)
    ] = None,
    store_type: Annotated[
        str | None,
        option(
            "--store-type",
            "Store type, if the files leave it open: key-value, window, session, versioned, time-ordered-window, "
            "time-ordered-session.",
            "TYPE",
            rich_help_panel=_STORES,
        ),
    ] = None,
    values: Annotated[
        str | None,
        option(
            "--values",
            "Values of time-ordered windows without headers: plain, or timestamped (the default).",
            "VALUES",
            rich_help_panel=_STORES,
        ),
    ] = None,
    mapping: Annotated[
        RecordMapping | None,
        option(
            "--mapping",
            "Iggy: read messages as the Kafka records that they contain, by kafka-gateway or kafka-gateway-lossless; copy writes this mapping.",
            "MAPPING",
        ),
    ] = None,
    timeout: Timeout = None,
    bootstrap_server: BootstrapServer = None,
    settings: Mapping[str, str],
) -> RowRequest:  # fmt: skip
    """Return the request for rows."""
    with usage_errors():
        return RowRequest(
            where=None if where is None else parse(where, timezone=SETTINGS.zone),
            start=points(start),
            end=points(end),
            last=last,
            partitions=partition_numbers("--partition", partition),
            committed=committed or None,
            mapping=None if mapping is None else mapping.value,
            timeout_ms=as_milliseconds(timeout),
            servers=bootstrap_server,
            settings=settings,
            stores=StoreOptions(store, store_type, values),
        )


def as_milliseconds(timeout: float | None) -> int | None:
    """Return the seconds of --timeout in milliseconds, or None without the option."""
    return None if timeout is None else round(timeout * 1000)


def check_unused(request: RowRequest) -> None:
    """Reject options of sources if one serialized message is read."""
    defaults = RowRequest(settings=request.settings, stores=StoreOptions(), timeout_ms=request.timeout_ms)
    if request != defaults or request.settings or request.servers:
        raise Failure("--start, --where, --config and the like need --column: they are for a column of a source")


class KeyRangeOptions(NamedTuple):
    """Key bounds as text, and the direction of reading."""

    first: str | None = None
    last: str | None = None
    prefix: str | None = None
    backward: bool = False


def key_range(
    first_key: Annotated[
        str | None,
        option("--from-key", "First key: text, hex:00ff, int64:7 and the like.", "KEY", rich_help_panel=_STORES),
    ] = None,
    last_key: Annotated[str | None, option("--to-key", "Last key, inclusive.", "KEY", rich_help_panel=_STORES)] = None,
    prefix: Annotated[
        str | None, option("--prefix", "Keys that begin with these bytes.", "KEY", rich_help_panel=_STORES)
    ] = None,
    reverse: Annotated[
        bool, option("--reverse", "Read from the last row to the first.", "", rich_help_panel=_STORES)
    ] = False,
) -> KeyRangeOptions:
    """Return key bounds as text, and the direction of reading."""
    if prefix is not None and (first_key is not None or last_key is not None):
        raise Failure("--prefix and --from-key, --to-key exclude each other: give one of them")
    return KeyRangeOptions(first_key, last_key, prefix, reverse)


def with_keys(request: RowRequest, keys: KeyRangeOptions) -> RowRequest:
    """Return the request for a range of keys."""
    if request.stores is None or keys == KeyRangeOptions():
        return request
    from letterhead.cli.state.rows import parse_stored_key
    from letterhead.state.reading.key_bounds import KeyBounds

    first_key, last_key = (None if key is None else parse_stored_key(key) for key in (keys.first, keys.last))
    bounds = KeyBounds(first_key, last_key, b"" if keys.prefix is None else parse_stored_key(keys.prefix))
    return replace(request, stores=request.stores._replace(keys=bounds, backward=keys.backward))


def parse_headers(text: str) -> list[TypedHeader]:
    """Return the columns of ``--headers``."""
    with usage_errors():
        return parse_header_text("--headers", text)


def header_columns(headers: str | None, profile: str | None = None) -> dict[str, Any] | None:
    """Return the columns of --profile, followed by the columns of --headers."""
    with usage_errors():
        typed: dict[str, Any] = {} if headers is None else {**columns_from_text("--headers", headers)}
        return {**conventions.profile(profile), **typed} if profile is not None else typed or None


def points(text: str) -> OffsetSpec:
    """Return one point for all partitions, or points for some partitions, written as 0=POINT,1=POINT."""
    if "=" not in text or text.startswith("group:"):
        return _point(text)
    points = {}
    for part in text.split(","):
        match = _PARTITION_POINT.fullmatch(part.strip())
        if match is None:
            raise Failure(f"{part!r} is not PARTITION=POINT, as in 0=5000,1=latest")
        if int(match[1]) in points:
            raise Failure(f"{part!r} is a second point of partition {int(match[1])}: give one")
        points[int(match[1])] = _point(match[2])
    return points


def _point(text: str) -> str | datetime:
    """Return a time without a zone in the zone of --tz, and other text unchanged."""
    if is_relative(text) or re.fullmatch(r"@?-?\d+", text):
        return text
    try:
        return read_iso_time(text, SETTINGS.zone)
    except ValueError:
        return text


def partition_numbers(option: str, texts: list[str] | None) -> frozenset[int] | None:
    """Return the partition numbers in text such as 0,3-5."""
    if not texts:
        return None
    numbers: set[int] = set()
    for part in ",".join(texts).split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise Failure(f"{option}: {part!r} is neither a number nor a range such as 3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < 1 << 31:
            raise Failure(f"{option}: {part} is not a valid range of partitions")
        if last - first >= MAX_PARTITIONS:
            raise Failure(f"{option}: {part} has more than {MAX_PARTITIONS:,} partitions")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)
