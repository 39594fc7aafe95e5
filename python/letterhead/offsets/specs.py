"""Start and end of reading in the syntax shared by all readers: :data:`OffsetSpec` and :class:`OffsetBounds`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from numbers import Integral
from typing import Literal, NamedTuple, TypeAlias

from letterhead._times import TIME_FORMS, check_unit, epoch_milliseconds, is_compact_date, read_time

__all__ = [
    "EARLIEST", "LATEST", "OffsetBounds", "OffsetPoint", "OffsetRangeError", "OffsetSpec", "PointSpec", "check_follow", "check_group",
    "describe_partitions", "group_of",
]  # fmt: skip

PointSpec: TypeAlias = int | str | datetime
"""Offset, negative number of offsets before the end, ``"earliest"``, ``"latest"``, or a time."""

OffsetSpec: TypeAlias = PointSpec | Mapping[int, PointSpec]
"""Point for all partitions, or a mapping from partition to point."""

_FIRST_TIME = 10_000_000_000
"""Time in April 1970, in milliseconds. Larger numbers that are not valid offsets are probably times."""

_EXPECTED = (
    "'earliest', 'latest', an offset, a negative number of offsets before the end, a time such as "
    f"{TIME_FORMS}, or a mapping of partition to one of these"
)


class OffsetRangeError(ValueError):
    """Error raised if no partition has the requested offsets."""


class OffsetPoint(NamedTuple):
    """Parsed start or end point in a partition."""

    kind: Literal["earliest", "latest", "offset", "time"]
    value: int = 0  # offset, number of offsets before the latest, or milliseconds since 1970
    exact: bool = False  # whether the offset must exist in the partition

    def __str__(self) -> str:
        if self.kind == "latest" and self.value:
            return f"-{self.value}"
        return f"@{self.value}" if self.kind == "time" else str(self.value) if self.kind == "offset" else self.kind

    def resolve(self, *, first: Callable[[], int], end: Callable[[], int], since: Callable[[int], int | None]) -> int:
        """Return the offset of the point.

        ``first`` and ``end`` return the first offset of the partition and the offset after its last record; ``since``
        returns the offset of the first record at or after a time, or None if all are older.
        """
        if self.kind == "offset":
            return self.value
        if self.kind == "earliest":
            return first()
        if self.kind == "latest":
            return max(end() - self.value, first()) if self.value else end()
        offset = since(self.value)
        return end() if offset is None else offset


EARLIEST, LATEST = OffsetPoint("earliest"), OffsetPoint("latest")


class OffsetBounds(NamedTuple):
    """Parsed ``start`` and ``end`` of a reader."""

    start: OffsetPoint | Mapping[int, OffsetPoint]
    end: OffsetPoint | Mapping[int, OffsetPoint]
    names: tuple[str, str] = ("start", "end")  # in errors

    @classmethod
    def parse(cls, start: OffsetSpec, end: OffsetSpec, names: tuple[str, str] = ("start", "end")) -> OffsetBounds:
        """Parse ``start`` and ``end``; raise ValueError if either is invalid, or the end is before the start."""
        bounds = cls(_parse_spec(names[0], start), _parse_spec(names[1], end), names)
        if isinstance(start, Mapping) and isinstance(end, Mapping):
            partitions = [*{*start} & {*end}]
        else:
            # Without a mapping, all partitions have the same points, so checking partition 0 is enough.
            partitions = [*(start if isinstance(start, Mapping) else end if isinstance(end, Mapping) else [0])]
        for partition in partitions:
            _check_order(names, *bounds.of_partition(partition))
        return bounds

    def of_partition(self, partition: int | None) -> tuple[OffsetPoint, OffsetPoint]:
        """Return the start and end points of a partition; raise ValueError if a mapping does not contain the partition."""
        return self._point(0, partition), self._point(1, partition)

    def check_partitions(self, available: Iterable[int | None], name: str) -> None:
        """Raise ValueError if a mapping contains a partition that does not exist in ``name``, such as a topic."""
        existing = {number for number in available if number is not None}
        for side, spec in zip(self.names, (self.start, self.end), strict=True):
            missing = set() if isinstance(spec, OffsetPoint) else {*spec} - existing
            if missing and existing:
                raise ValueError(
                    f"{side} names partition {min(missing)}, and {name} has {describe_partitions(existing)}"
                )

    def deleted_before(self, partition: int | None, first: int) -> str | None:
        """Return a remark if the requested offsets have been deleted, so that reading begins at the first offset."""
        start = self._point(0, partition)
        if start.kind != "offset" or start.value >= first:
            return None
        name = "the file" if partition is None else f"partition {partition}"
        return f"{name} begins at offset {first}: offset {start.value} was deleted"

    def unreachable_error(self, limit: str) -> OffsetRangeError:
        """Return the error for a start that is after ``limit`` in every partition."""
        why = f"{self.names[0]} is after {limit}"
        if isinstance(self.start, OffsetPoint) and self.start.value >= _FIRST_TIME:
            why += f"; for a time in milliseconds since 1970, pass '@{self.start.value}' or a datetime"
        elif isinstance(self.start, OffsetPoint) and is_compact_date(text := str(self.start.value)):
            why += f"; for a date, pass '{text[:4]}-{text[4:6]}-{text[6:]}'"
        return OffsetRangeError(why)

    def too_early_error(self, first: int) -> OffsetRangeError:
        """Return the error for an end before the beginning of every partition; ``first`` is the smallest first offset."""
        return OffsetRangeError(
            f"{self.names[1]} is before the beginning of every partition: the first one begins at offset {first}"
        )

    def _point(self, side: int, partition: int | None) -> OffsetPoint:
        spec = self.end if side else self.start
        if isinstance(spec, OffsetPoint):
            return spec
        if partition is None:
            raise ValueError(
                f"{self.names[side]} names partitions, and a file has none: move it to a directory such as orders-0"
            )
        if partition not in spec:
            raise ValueError(
                f"{self.names[side]} has no entry for partition {partition}: add one, or leave it out of partitions"
            )
        return spec[partition]


_MAX_LISTED = 10
"""Maximum number of partitions listed in an error."""


def describe_partitions(numbers: Iterable[int]) -> str:
    """Describe partitions for errors: their numbers, or their count if they are numbered from 0."""
    ordered = sorted({*numbers})
    if len(ordered) == 1:
        return f"only partition {ordered[0]}"
    if ordered == [*range(len(ordered))]:
        return f"partitions 0 to {ordered[-1]}"
    listed = ", ".join(map(str, ordered[:_MAX_LISTED]))
    more = f" and {len(ordered) - _MAX_LISTED} more" if len(ordered) > _MAX_LISTED else ""
    return f"partitions {listed}{more}"


_GROUP = "group:"


def group_of(name: str, spec: object) -> str | None:
    """Return the consumer group in ``"group:NAME"``, or None for other points."""
    if not isinstance(spec, str) or not spec.startswith(_GROUP):
        return None
    group = spec.removeprefix(_GROUP)
    check_group(name, group)
    return group


def check_group(name: str, group: str | None) -> None:
    """Raise TypeError or ValueError for an invalid name of a consumer group."""
    if group is not None and not isinstance(group, str):
        raise TypeError(f"{name} must be the name of a consumer group, not {type(group).__name__}")
    if group == "":
        raise ValueError(f"{name} names no consumer group: its name is empty")


def check_follow(bounds: OffsetBounds, *, follow: bool) -> None:
    """Raise ValueError if ``follow`` is combined with an end."""
    if follow and bounds.end != LATEST:
        raise ValueError(f"follow has no end: leave out {bounds.names[1]}")


def _parse_spec(name: str, spec: OffsetSpec) -> OffsetPoint | dict[int, OffsetPoint]:
    if not isinstance(spec, Mapping):
        return _parse_point(name, spec)
    for partition in spec:
        if not isinstance(partition, Integral) or isinstance(partition, bool):
            raise TypeError(f"{name} must map numbers of partitions to points, such as {{0: 100}}, not {partition!r}")
    points = {int(partition): _parse_point(name, point) for partition, point in spec.items()}
    return {partition: point._replace(exact=point.kind == "offset") for partition, point in points.items()}


def _parse_point(name: str, spec: object) -> OffsetPoint:
    if isinstance(spec, str):
        return _parse_text(name, spec)
    if isinstance(spec, datetime):
        if spec.tzinfo is None:
            raise ValueError(f"{name} is a datetime without a time zone: {spec}")
        return _time_point(spec)
    if isinstance(spec, Integral) and not isinstance(spec, bool):
        number = int(spec)
        return OffsetPoint("offset", number) if number >= 0 else OffsetPoint("latest", -number)
    raise ValueError(f"{name} must be {_EXPECTED}, not {spec!r}")


def _parse_text(name: str, text: str) -> OffsetPoint:
    if text in ("earliest", "latest"):
        return LATEST if text == "latest" else EARLIEST
    digits = text.removeprefix("@").removeprefix("-")
    if digits.isascii() and digits.isdecimal():
        return _milliseconds_point(name, int(text[1:])) if text.startswith("@") else _parse_point(name, int(text))
    try:
        return _time_point(read_time(text))
    except ValueError:
        raise ValueError(f"{name} must be {_EXPECTED}, not {text!r}") from None


def _milliseconds_point(name: str, number: int) -> OffsetPoint:
    check_unit(name, number, mark="@")
    return OffsetPoint("time", number)


def _time_point(time: datetime) -> OffsetPoint:
    return OffsetPoint("time", epoch_milliseconds(time))


def _check_order(names: tuple[str, str], start: OffsetPoint, end: OffsetPoint) -> None:
    """Raise ValueError if the end is before the start in every partition."""
    if start.kind != end.kind:
        return
    if start.value < end.value if start.kind == "latest" else start.value > end.value:
        raise ValueError(f"{names[1]} is before {names[0]}")
