"""Where our stores do otherwise than Java's on purpose, and what they do instead.

Two tables. Some operations depend on a defect, or on an incidental order, of Java's iterators: the traces mark them with
`java_quirk`, and `QUIRKS` says what ours give, found out from the store at that very moment. Other defects of Java show
in results, records and files without a mark: `DEFECTS` names the traces, and turns what Java did into what is right, so
that everything else in these traces is still compared to the byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import letterhead as lh
from letterhead.errors import PrefixError, ProcessorStateError, UnsupportedOperationError

if TYPE_CHECKING:
    from tests.state.traces import Families

ERRORS: dict[str, type[Exception]] = {
    "java.lang.IllegalArgumentException": ValueError,
    "java.lang.IllegalStateException": RuntimeError,
    "java.lang.IndexOutOfBoundsException": PrefixError,
    "java.lang.NullPointerException": TypeError,
    "java.lang.UnsupportedOperationException": UnsupportedOperationError,
    "org.apache.kafka.streams.errors.ProcessorStateException": ProcessorStateError,
}
"""What Java raises, and what we raise; the texts are the same where Java has one."""


class Failed(tuple[type, str | None]):
    """What an operation gives that raises: the class, and the text where Java has one."""

    __slots__ = ()


# Operations with a mark. A rule is given the store as it is then, a function that performs operations on it, the
# operation, our result and Java's; it gives what ours must be.

Perform = Callable[[dict[str, Any]], Any]
LAST = (1 << 63) - 1


def reverse_of_forward(perform: Perform, op: dict[str, Any], ours: Any, java: Any) -> Any:
    """What comes backward is what comes forward, in reverse: deleted rows stay away, and nothing is missed."""
    forward = {"reverseRange": "range", "reverseAll": "all"}.get(op["op"]) or _forward(op)
    return perform({**op, "op": forward})[::-1]


def part_of_all(perform: Perform, op: dict[str, Any], ours: Any, java: Any) -> Any:
    """A range that is open on a side is a part of all rows of the time: each once, in the order of the store."""
    everything = perform({"op": "fetchAll", "from": op["from"], "to": op["to"]})
    low, high = op["key_from"], op["key_to"]
    rows = [row for row in everything if (low is None or row["key"] >= low) and (high is None or row["key"] <= high)]
    return rows[::-1] if op["op"].startswith("backward") else rows


def order_of_memory(perform: Perform, op: dict[str, Any], ours: Any, java: Any) -> Any:
    """A cache over a store in memory returns each row once, in the order of that store, and finds sessions by time.

    Where Java returns a cached row and an older one of the store, the cached one is right. A range of windows also has the
    rows in the cache that Java misses: those of keys that the last key begins with. They are looked up among all rows of
    the time, since Java may return an older row of the store in their place.
    """
    if op["op"] == "findSessionsTime":
        first, last = int(op["earliest_end"]), int(op["latest_end"])
        if first > last:
            return Failed((ValueError, "inconsistent range"))  # as without a cache
        everything = perform({"op": "fetchRange", "key_from": None, "key_to": None})
        return [row for row in everything if first <= int(row["end"]) <= last]
    if not isinstance(java, list):
        return java
    missed = may_miss(op)
    if missed:
        java = [row for row in java if row["key"] not in missed]
        java += [row for row in part_of_all(perform, op, ours, java) if row["key"] in missed]
    once: dict[Any, dict[str, Any]] = {}
    for row in java:
        place = row.get("key"), row["start"], row.get("end")
        if place not in once or row in ours:
            once[place] = row
    return sorted(once.values(), key=_memory_order, reverse=op["op"].startswith("backward"))


def prefixes_of_the_last_key(op: dict[str, Any], ours: Any, java: Any) -> Any:
    """A range of windows has the rows of keys that its last key begins with; Java misses some of them."""
    missed = may_miss(op)
    if not missed:
        return java
    return [row for row in ours if row in java or row["key"] in missed] + [row for row in java if row not in ours]


def may_miss(op: dict[str, Any]) -> list[str]:
    """Return the keys of which Java may miss windows in a range: its last key begins with them and goes on with `00`."""
    last = op.get("key_to")
    if op["op"] not in ("fetchRange", "backwardFetchRange") or "from" not in op or last is None:
        return []
    return [last[:end] for end in range(0, len(last), 2) if last[end : end + 2] == "00"]


def by_time_to_the_end(perform: Perform, op: dict[str, Any], ours: Any, java: Any) -> Any:
    """The last millisecond that there is, as a bound, is no other than the one before."""
    return java if isinstance(java, Failed) else perform({**op, "latest_end": LAST - 1})


QUIRKS: dict[str, Callable[[Perform, dict[str, Any], Any, Any], Any]] = {
    "cached-reverse-over-tombstone": reverse_of_forward,
    "cached-backward-session-bound": reverse_of_forward,
    "cached-window-open-range": part_of_all,
    "cached-in-memory-merge-order": order_of_memory,
    "time-ordered-latest-end-overflow": by_time_to_the_end,
}


def _forward(op: dict[str, Any]) -> str:
    name = op["op"].removeprefix("backward")
    return name[0].lower() + name[1:]


def _memory_order(row: dict[str, Any]) -> Any:
    key, start, end = row.get("key", ""), int(row["start"]), int(row.get("end", row["start"]))
    # Windows by start and key; sessions by end, key and start, the last one first. A window's end says nothing new.
    return (start, key, 0) if row["value"] is None or "aggregation" not in row["value"] else (end, key, -start)


# Defects without a mark.


class AsJava:
    """No defect: everything is as in Java."""

    def __init__(self, trace: str, changelog: list[Any]) -> None:
        self.trace = trace

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        """What an operation gives."""
        return java

    def changelog(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What a step logs."""
        return rows

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        """What a column family has."""
        return entries


class NoOrphans(AsJava):
    """A null removes the row of a store ordered by time and its entry in the index; Java leaves the entry."""

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        rows = {key for family in families.values() for key, _ in family if key.startswith("00")}
        return [(key, value) for key, value in entries if not key.startswith("01") or self.row(key) in rows]

    def row(self, index: str) -> str:
        return "00" + index[-24:-8] + index[2:-24] + index[-8:]


class TimeOrderedSessions(NoOrphans):
    """A null removes the entry of a session ordered by time in the index, too."""

    def row(self, index: str) -> str:
        return "00" + index[-32:] + index[2:-32]


class TimeOrderedSessionUpgrade(TimeOrderedSessions):
    """An older aggregation of a session ordered by time is moved as it is; Java puts `00` before it."""

    def __init__(self, trace: str, changelog: list[Any]) -> None:
        super().__init__(trace, changelog)
        self.aggregations: dict[tuple[str, int, int], str] = {}

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        if op["op"] in ("put", "remove"):
            value = op["plain"] if op.get("plain") is not None else (op.get("value") or {}).get("aggregation")
            self._put(op["key"], int(op["start"]), int(op["end"]), value)
        if phase == 0 or java is None:
            return java
        if isinstance(java, list):
            return [{**row, "value": self._value(row["key"], int(row["start"]), int(row["end"]))} for row in java]
        return self._value(op["key"], int(op["start"]), int(op["end"]))

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        kept = super().family(phase, name, entries, families)
        if name != "sessionKeyValueWithHeaders":
            return kept
        return [(key, self._stored(key) if key.startswith("00") else "") for key, _ in kept]

    def _put(self, key: str, start: int, end: int, aggregation: str | None) -> None:
        if aggregation is None:
            self.aggregations.pop((key, start, end), None)
        else:
            self.aggregations[key, start, end] = aggregation

    def _value(self, key: str, start: int, end: int) -> dict[str, Any]:
        return {"aggregation": self.aggregations[key, start, end], "headers": []}

    def _stored(self, row: str) -> str:
        end, start = struct.unpack(">qq", bytes.fromhex(row[2:34]))
        return self.aggregations[row[34:], start, end]


class NoPositionInRows(AsJava):
    """The position in a changelog record does not become two headers of the restored row."""

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        if not isinstance(java, list):
            return java
        return [{**row, "value": {**row["value"], "headers": row["value"]["headers"][:-2]}} for row in java]

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        if name != "keyValueWithTimestampAndHeaders":
            return entries
        return [(key, self._without(value)) for key, value in entries]

    @staticmethod
    def _without(value: str) -> str:
        message: Any = lh.decode(bytes.fromhex(value), "streams-timestamped")
        assert [key for key, _ in message.headers[-2:]] == ["v", "c"]
        data = lh.encode(message._replace(headers=message.headers[:-2]), "streams-timestamped")
        assert data is not None
        return data.hex()


class NothingBeforeTheRefusal(AsJava):
    """What the changelog cannot take is refused before the store is changed, and not after."""

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        return None if op["op"] == "get" else java

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        if name == "offsets":
            return [(key, bytes(40).hex() if key == b"position".hex() else value) for key, value in entries]
        return []


class OneNumbering(AsJava):
    """Duplicates have the numbers in the changelog that they have in the store: a null, which does nothing, has none.

    Java's changelog counts nulls, and what a store in memory drops; its store does not.
    """

    def __init__(self, trace: str, changelog: list[Any]) -> None:
        super().__init__(trace, changelog)
        self.sequence = 0

    def changelog(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ours = []
        for row in rows:
            if row["value"] is not None:
                self.sequence += 1
                ours.append({**row, "key": row["key"][:-8] + struct.pack(">i", self.sequence).hex()})
        return ours

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        if name != "offsets":
            return entries
        written = struct.pack(">q", self.sequence - 1).hex()
        return [(key, written if key == b"app-store-changelog-0".hex() else value) for key, value in entries]


class HistoryAfterReopening(AsJava):
    """A versioned store knows its older segments when it is opened again; Java's finds them when it writes to them."""

    def __init__(self, trace: str, changelog: list[Any]) -> None:
        super().__init__(trace, changelog)
        self.versions: dict[str, dict[int, str | None]] = {}
        self.observed = -1

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        if op["op"] in ("put", "delete") and java != str(-(1 << 63)):
            self.observed = max(self.observed, int(op["timestamp"]))
            self.versions.setdefault(op["key"], {})[int(op["timestamp"])] = op.get("value")
        if op["op"] != "getAsOf" or java is not None or phase == 0:
            return java
        at = max((time for time in self.versions.get(op["key"], {}) if time <= int(op["as_of"])), default=None)
        value = None if at is None else self.versions[op["key"]][at]
        return None if value is None else {"value": value, "timestamp": str(at), "valid_to": None}


DEFECTS: dict[str, type[AsJava]] = {
    "kv-rocksdb-headers-consistency-restored": NoPositionInRows,
    "kv-rocksdb-headers-negative-timestamp": NothingBeforeTheRefusal,
    "window-rocksdb-headers-duplicates": OneNumbering,
    "window-in-memory-duplicates": OneNumbering,
    "window-rocksdb-time-ordered-headers": NoOrphans,
    "session-rocksdb-time-ordered-headers": TimeOrderedSessions,
    "session-rocksdb-time-ordered-headers-restored": TimeOrderedSessions,
    "upgrade-time-ordered-window": NoOrphans,
    "upgrade-time-ordered-session": TimeOrderedSessionUpgrade,
    "versioned-rocksdb": HistoryAfterReopening,
}
"""The traces in which a defect of Java shows, and what is right."""
