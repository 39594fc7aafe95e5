"""The last step of `letterhead demo`: the messages of the topic in every format and back, and what each cannot carry.

Without Spark: a column goes in and a column comes out. The way back checks every conversion: each header that was not
reported as lost has to be there again, in its place, with its kind and its bits, and each field with its value.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from letterhead import arrow as lha
from letterhead.cli.document import headers_of
from letterhead.cli.formats import table_of_formats
from letterhead.cli.headers import key_text
from letterhead.cli.spelling import spell
from letterhead.values import Value

# What the values of the topic are: Kafka has no place for it, so it has to be said.
KINDS = {
    "__value_schema_id": "binary",
    "amount_cents": "int64",
    "blob": "binary",
    "ce_id": "string",
    "ce_source": "string",
    "ce_specversion": "string",
    "ce_type": "string",
    "note": "string",
    "retry": "int32",
    "route": "string",
    "señal-📦": "string",
    "tenant": "string",
    "traceparent": "string",
    "tracestate": "string",
    "weight_kg": "float64",
}
# These carry all that the topic has, so nothing is lost before the conversions that are looked at.
BLOCK, MESSAGE = "kip82-typed", "kip82-message"
FIELDS = ("offset", "timestamp", "key", "value")
# What a loss is called, by its code, and whether it is one of a header. Fields that are lost have their names.
WHAT = {
    ("kind_not_carried", True): "kinds",
    ("key_not_carried", True): "text keys",
    ("null_not_carried", True): "null values",
    ("empty_value", True): "empty values",
    ("too_long", True): "overlong values",
    ("null_not_carried", False): "null payloads",
}
# More headers than a message of the topic has: what numbers all of them.
STEP = 1 << 16


@dataclass
class Everywhere:
    """What the step found: a row a format, and what did not hold."""

    report: dict[str, Any]
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    headers: int = 0


def in_every_format(topic: Path) -> Everywhere:
    """Convert the messages of a topic to every format and back."""
    messages = _messages(topic)
    headers = messages.field("headers")
    cells = {"block": lha.encode(headers, BLOCK, kinds=KINDS), "envelope": lha.encode(messages, MESSAGE, kinds=KINDS)}
    row = _example(headers)
    record = lha.decode(cells["block"].slice(row, 1), BLOCK).to_pylist()[0]
    found = Everywhere(
        {
            "records": len(messages),
            "headers": len(headers.flatten()),
            "record": {
                "offset": messages.field("offset")[row].as_py(),
                "headers": [
                    {"key": key_text(key), "value": spell(value) if isinstance(value, Value) else None}
                    for key, value in headers_of(record)
                ],
            },
            "rows": [],
        }
    )
    for target in (each for each in table_of_formats().values() if each["is_target"]):
        found.report["rows"].append(_there_and_back(found, cells[target["is_"]], target, row))
    return found


def _messages(topic: Path) -> Any:
    """Read the topic as messages of the format that carries all of them."""
    table = pq.read_table(topic).combine_chunks()
    zone = table.schema.field("timestamp").type.tz
    given = {name: table[name].combine_chunks() for name in ("offset", "key", "headers", "value")}
    given["timestamp"] = table["timestamp"].combine_chunks().cast(pa.timestamp("ms", tz=zone)).cast(pa.int64())
    computed = {"crc": pa.int64(), "magic": pa.int8(), "attributes": pa.int8(), "tombstone": pa.bool_()}
    given |= {name: pa.nulls(len(table), of) for name, of in computed.items()}
    return pa.StructArray.from_arrays(list(given.values()), names=list(given))


def _example(headers: Any) -> int:
    """Pick the first message with repeats, a null value and a name outside ASCII; without one, the first of all."""
    for row, each in enumerate(headers.to_pylist()):
        values = [(header["key"], header["value"]) for header in each or []]
        repeats = len({key for key, _ in values}) < len(values)
        nulls = any(value is None for _, value in values)
        if repeats and nulls and any(key == "tenant" and value and not value.isascii() for key, value in values):
            return row
    return 0


def _there_and_back(found: Everywhere, cells: Any, target: dict[str, Any], example: int) -> dict[str, Any]:
    name = target["name"]
    source = BLOCK if target["is_"] == "block" else MESSAGE
    began = time.perf_counter()
    there = lha.convert(cells, source, target=name, kinds=None if target["kinds"] else "be", on_loss="report")
    found.seconds += time.perf_counter() - began
    data = there.field("data")
    losses = _Losses(there.field("losses"))
    began = time.perf_counter()
    # The losses name the kinds that make the values what they were.
    back = lha.convert(data, name, target=source, kinds=losses.kinds or None, on_loss="report").field("data")
    found.seconds += time.perf_counter() - began

    before, after = lha.decode(cells, source, errors="column"), lha.decode(back, source, errors="column")
    numbers, headers = _numbered(before.field("headers"))
    gone = pc.or_(pc.is_in(numbers, losses.left_out), pc.is_in(pc.divide(numbers, STEP), _rows_where(data.is_null())))
    kept = pa.table({"number": numbers, "header": headers}).filter(pc.invert(gone))
    came, same = _numbered(after.field("headers"))
    # Where headers were left out, those behind them have moved up: the order is compared, and the message they are in.
    equal = same.equals(kept["header"].combine_chunks()) and pc.divide(came, STEP).equals(
        pc.divide(kept["number"].combine_chunks(), STEP)
    )
    if not equal:
        found.failures.append(f"{name}: headers that were not reported as lost came back otherwise than they went")
    if losses.unknown:
        found.failures.append(f"{name}: losses that the topic should not have: {', '.join(losses.unknown)}")
    if source == MESSAGE:
        changed = [
            each for each in FIELDS if each not in losses.fields and not _same(each, before, after, data, losses)
        ]
        found.failures += [f"{name}: {each} was not reported as lost and came back changed" for each in changed]
    found.headers += len(numbers) + len(came)
    return {
        "format": name,
        "is": target["is_"],
        "bytes": pc.sum(pc.binary_length(data)).as_py(),
        "record_bytes": len(data[example].as_py() or b""),
        "headers": len(came),
        "equal": equal,
        "not_carried": losses.groups,
    }


class _Losses:
    """The losses of a column: what they are, which headers they left out, and what gives values their kinds back."""

    def __init__(self, column: Any) -> None:
        rows, flat = pc.list_parent_indices(column), column.flatten()
        code, message, header, key, kind, written = flat.flatten()
        left_out = pc.and_(header.is_valid(), written.is_null())
        self.left_out = pc.add(pc.multiply(rows.filter(left_out), STEP), header.filter(left_out).cast(pa.int64()))
        self.emptied = rows.filter(pc.and_(header.is_null(), pc.equal(written, "empty").fill_null(False)))
        of_field = pc.and_(header.is_null(), pc.equal(code, "field_not_carried"))
        messages = message.filter(of_field).to_pylist()
        self.fields = [each.removesuffix(" is not carried") for each in dict.fromkeys(messages)]
        pairs = pa.table({"key": key, "kind": kind}).filter(kind.is_valid()).group_by(["key", "kind"]).aggregate([])
        self.kinds = {pair["key"]: pair["kind"] for pair in pairs.to_pylist()}
        self.groups = [{"what": name, "count": messages.count(f"{name} is not carried")} for name in self.fields]
        groups = pa.table({"code": code, "of_header": header.is_valid()}).group_by(["code", "of_header"])
        counts = {
            (each["code"], each["of_header"]): each["count_all"]
            for each in groups.aggregate([([], "count_all")]).to_pylist()
        }
        self.groups += [{"what": what, "count": counts.pop(of)} for of, what in WHAT.items() if of in counts]
        self.unknown = sorted(code for code, _ in counts if code != "field_not_carried")


def _numbered(lists: Any) -> tuple[Any, Any]:
    """Give every header of a column a number, which has its message and its place in it, and the headers."""
    rows = pc.list_parent_indices(lists)
    starts = pc.subtract(lists.offsets, lists.offsets[0]).cast(pa.int64()).take(rows)
    places = pc.subtract(pa.array(range(len(rows)), pa.int64()), starts)
    return pc.add(pc.multiply(rows, STEP), places), lists.flatten()


def _rows_where(mask: Any) -> Any:
    return pa.array(range(len(mask)), pa.int64()).filter(mask)


def _same(name: str, before: Any, after: Any, data: Any, losses: _Losses) -> bool:
    """Say whether a field came back as it went, where there was a cell for it."""
    went = before.field(name)
    if name == "value":
        emptied = pc.is_in(pa.array(range(len(went)), pa.int64()), losses.emptied)
        went = pc.if_else(emptied, pa.scalar(b"", went.type), went)
    there = data.is_valid()
    return bool(after.field(name).filter(there).equals(went.filter(there)))
