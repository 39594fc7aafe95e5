"""Random operations on stores, in the words of the traces: the same seed gives the same ones.

They look for what is easily got wrong: keys that begin with one another, that are empty or not text; equal keys at
several times, and times at the edges of segments; headers with no value, the same key twice, or any script; tombstones;
rows of many kilobytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Op = dict[str, Any]
Step = tuple[dict[str, Any], list[Op]]
"""The record that is handled, and what is done meanwhile."""

LAST = (1 << 63) - 1
SEGMENT = 120_000
"""Milliseconds of a segment where twice as much is kept."""


def config_of(family: str, format: str = "headers", **more: Any) -> dict[str, Any]:
    """Return the description of the store for `traces.builder_of` and for Java."""
    usual = {"caching": False, "logging": True, "serdes": "bytes"}
    times = {"retention_ms": 2 * SEGMENT, "window_size_ms": 10_000, "retain_duplicates": False}
    return {"family": family, "format": format, **usual, **times, **more}


class Operations:
    """Operations on one store; `spread` is how far the times of windows and sessions go."""

    def __init__(self, seed: int | str, spread: int = 2 * SEGMENT) -> None:
        self.random = random.Random(seed)
        self.spread = spread
        pool = [b"", b"\0", b"\0" * 9, b"a", b"a\0", b"aa", b"ab", b"b", b"\xff", b"\xff\xff", b"\x80" * 8, b"k" * 300]
        pool += ["ключ".encode(), "鍵".encode(), "🎈".encode()]
        self.keys = pool + [self.random.randbytes(self.random.randint(1, 12)) for _ in range(8)]
        edges = [0, 1, 9_999, 10_000, SEGMENT - 1, SEGMENT, SEGMENT + 1, spread - 1]
        self.times = edges + [self.random.randrange(spread) for _ in range(8)]
        self._sessions: dict[bytes, set[tuple[int, int]]] = {}
        self._newest: dict[str, int] = {}

    def writes(self, config: Op, steps: int, ops_in_step: int) -> list[Step]:
        """Steps that write, and read a little in between."""
        make: Callable[[Op], list[Op]] = {
            "kv": self._key_value,
            "window": self._window,
            "session": self._session,
            "versioned": self._versioned,
        }[family_of(config)]
        result = []
        for _ in range(steps):
            ops: list[Op] = []
            while len(ops) < ops_in_step:
                ops += make(config)
            result.append((self._record(), ops))
        return result

    def scans(self, config: Op) -> Step:
        """A step that reads everything, forward and backward, and parts of it.

        In an upgrade it moves nothing, but in stores ordered by time, which look up what they find in their index.
        """
        ops = self._scans(config)
        if config["caching"] and family_of(config) == "session":
            # Java's cache does not come back over the edge of a segment: `deviations.py` says what is right.
            ops = [op for op in ops if not op["op"].startswith("backward")]
        return self._record(), ops

    def gets(self, config: Op, share: float = 1.0) -> Step:
        """A step that reads by key, a share of all keys there may be; in an upgrade it moves them."""
        keys = [key for key in self.keys if self.random.random() < share]
        match family_of(config):
            case "window":
                ops = [{"op": "fetch", "key": key.hex(), "start": str(at)} for key in keys for at in self.times]
            case "session":
                ops = [
                    {"op": "fetchSession", "key": key.hex(), "start": str(start), "end": str(end)}
                    for key in keys
                    for start, end in sorted(self._sessions.get(key, ()))
                ]
            case _:
                ops = [{"op": "get", "key": key.hex()} for key in keys]
        return self._record(), ops

    def history(self) -> Step:
        """A step that reads what was valid at each of the times."""
        ops = [{"op": "getAsOf", "key": key.hex(), "as_of": str(at)} for key in self.keys for at in self.times]
        return self._record(), ops

    # Writes of each family.

    def _key_value(self, config: Op) -> list[Op]:
        op = self._choose(put=60, putIfAbsent=10, delete=12, putAll=8, get=10)
        if op == "putAll":
            entries = [{"key": self._key().hex(), **self._value(config)} for _ in range(self.random.randint(1, 5))]
            return [{"op": op, "entries": entries}]
        value = self._value(config) if op.startswith("put") else {}
        return [{"op": op, "key": self._key().hex(), **value}]

    def _window(self, config: Op) -> list[Op]:
        key, start = self._key().hex(), str(self.random.choice(self.times))
        if self.random.random() < 0.1:
            return [{"op": "fetch", "key": key, "start": start}]
        return [{"op": "put", "key": key, "start": start, **self._value(config)}]

    def _session(self, config: Op) -> list[Op]:
        """A record joins the sessions of its key that are near: they are removed, and one session takes their place."""
        key, at = self._key(), self.random.choice(self.times)
        gap = self.random.choice((0, 0, 0, 1, 1, 5_000, 60_000))
        known = self._sessions.setdefault(key, set())
        near = [(start, end) for start, end in known if end >= at - gap and start <= at + gap]
        if near and self.random.random() < 0.2:
            known -= set(near)
            return [self._at(key, start, end, op="remove") for start, end in sorted(near)]
        merged = min([at, *(start for start, _ in near)]), max([at, *(end for _, end in near)])
        known -= set(near)
        known.add(merged)
        find = {"op": "findSessionsKey", "key": key.hex()}
        find |= {"earliest_end": str(max(at - gap, 0)), "latest_start": str(at + gap)}
        removed = [self._at(key, start, end, op="remove") for start, end in sorted(near)]
        return [find, *removed, self._at(key, *merged, op="put", **self._value(config, aggregation=True))]

    def _versioned(self, config: Op) -> list[Op]:
        key, at = self._key().hex(), self.random.choice(self.times)
        op = self._choose(put=70, delete=15, get=15)
        if op == "get":
            return [{"op": op, "key": key}]
        value = self._maybe(self._bytes(), 0.1) if op == "put" else None
        if value is None and at == self._newest.get(key):
            # Java forgets such a deletion, and we do not: see docs/explanation/state-stores.md.
            op, value = "put", ""
        self._newest[key] = max(at, self._newest.get(key, at))
        return [{"op": op, "key": key, "timestamp": str(at), **({"value": value} if op == "put" else {})}]

    # Reads of each family.

    def _scans(self, config: Op) -> list[Op]:
        match family_of(config):
            case "kv":
                bounds = [self._bounds("from", "to") for _ in range(4)]
                prefixes = [b"", b"a", b"\xff", self._key()[:1]]
                return [
                    {"op": "all"},
                    {"op": "reverseAll"},
                    *({"op": op, **bound} for bound in bounds for op in ("range", "reverseRange")),
                    *({"op": "prefixScan", "prefix": prefix.hex()} for prefix in prefixes if not config["caching"]),
                ]
            case "window":
                fetch_all = [{"from": "0", "to": str(LAST)}, self._span("from", "to"), self._span("from", "to")]
                ranges = [{**self._bounds("key_from", "key_to"), **self._span("from", "to")} for _ in range(4)]
                if config["caching"]:  # Java gives rows twice where there is no bound
                    ranges = [limits for limits in ranges if None not in (limits["key_from"], limits["key_to"])]
                if config["family"] == "time-ordered-window":  # what Java misses, it does not move in an upgrade either
                    ranges = [limits for limits in ranges if "00" not in (limits["key_to"] or "")]
                keys = [{"key": key.hex(), "from": "0", "to": str(LAST)} for key in self.keys[::2]]
                keys += [{"key": key.hex(), **self._span("from", "to")} for key in self.keys[1::2]]
                forward = [("fetchAll", limits) for limits in fetch_all]
                forward += [("fetchRange", limits) for limits in ranges] + [("fetchKey", limits) for limits in keys]
                both = [{"op": op, **limits} for name, limits in forward for op in (name, _backward(name))]
                return [{"op": "all"}, {"op": "backwardAll"}, *both]
            case "session":
                everything = {"key_from": None, "key_to": None}
                times = ("earliest_end", "latest_start")
                forward = [
                    ("fetchRange", limits) for limits in [everything, *(self._bounds(*everything) for _ in range(3))]
                ]
                forward += [
                    ("findSessionsRange", {**self._bounds(*everything), **self._span(*times)}) for _ in range(3)
                ]
                forward += [("findSessionsKey", {"key": key.hex(), **self._span(*times)}) for key in self.keys[::2]]
                forward += [("fetchKey", {"key": key.hex()}) for key in self.keys[1::2]]
                return [{"op": op, **limits} for name, limits in forward for op in (name, _backward(name))]
        raise AssertionError(f"a store that cannot be scanned: {config['family']}")

    # What operations are made of.

    def _record(self) -> dict[str, Any]:
        return {"timestamp": str(self.random.randrange(10**12)), "headers": self._headers()}

    def _value(self, config: Op, *, aggregation: bool = False) -> Op:
        # Java leaves parts of such rows behind, or numbers its changelog another way: `deviations.py` says how.
        keeps_nulls = config["retain_duplicates"] or config["family"] == "time-ordered-window"
        value = self._bytes()
        if not keeps_nulls and self.random.random() < 0.15:
            return {"value": None}
        if config["format"] == "plain":
            return {"plain": value.hex()}
        timestamp = str(self.random.choice((0, 1, 1_700_000_000_000, 2**53 + 1, LAST)))
        if config["format"] == "timestamped":
            return {"timestamped": {"value": value.hex(), "timestamp": timestamp}}
        inner = self._maybe(value, 0 if keeps_nulls else 0.05)
        if aggregation:
            return {"value": {"aggregation": inner, "headers": self._headers()}}
        return {"value": {"value": inner, "timestamp": timestamp, "headers": self._headers()}}

    def _headers(self) -> list[dict[str, Any]]:
        keys = ("", "tenant", "tenant", "тема", "見出し", "🎈", "x" * 200, "a b\n")
        return [
            {"key": self.random.choice(keys), "value": self._maybe(self._bytes(), 0.25)}
            for _ in range(self.random.choice((0, 0, 1, 2, 3, 10)))
        ]

    def _bytes(self) -> bytes:
        if self.random.random() < 0.01:
            return self.random.randbytes(self.random.randint(10_000, 80_000))
        return self.random.choice((b"", b"\0", b"\xff" * 9, self.random.randbytes(self.random.randint(1, 40))))

    def _maybe(self, data: bytes, null: float) -> str | None:
        return None if self.random.random() < null else data.hex()

    def _key(self) -> bytes:
        return self.random.choice(self.keys)

    def _bounds(self, low: str, high: str) -> Op:
        first, last = sorted((self._key(), self._key()))
        open_ended = self.random.random()
        return {low: None if open_ended < 0.2 else first.hex(), high: None if open_ended > 0.8 else last.hex()}

    def _span(self, low: str, high: str) -> Op:
        first, last = sorted((self.random.choice(self.times), self.random.choice(self.times)))
        return {low: str(first), high: str(last)}

    def _at(self, key: bytes, start: int, end: int, **bounds: Any) -> Op:
        return {"key": key.hex(), "start": str(start), "end": str(end), **bounds}

    def _choose(self, **weights: int) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]


def puts(config: Op, count: int) -> list[Step]:
    """Steps of one write each, of 10 kB: a few of them fill a small write buffer."""
    keys = Operations("puts").keys[:7]
    steps = []
    for n in range(count):
        data, number = n.to_bytes(2, "big") * 5_000, n.to_bytes(2, "big").hex()
        headers = [{"key": "n", "value": number}, {"key": "null", "value": None}]
        op = {"op": "put", "key": keys[n % len(keys)].hex()}
        at = n % 11 * 5_000 + (SEGMENT if n % 5 else 0)  # some records are late
        if config["family"] == "session":
            value = {"aggregation": data.hex(), "headers": headers}
            op |= {"start": str(at), "end": str(at + 1)}
        else:
            value = {"value": data.hex(), "timestamp": str(n), "headers": headers}
            op |= {"start": str(at)} if config["family"] == "window" else {}
        steps.append(({"timestamp": str(n), "headers": headers}, [{**op, "value": value}]))
    return steps


def family_of(config: Op) -> str:
    """The family of a store, whatever the order of its rows."""
    return str(config["family"]).removeprefix("time-ordered-")


def _backward(name: str) -> str:
    return f"backward{name[0].upper()}{name[1:]}"
