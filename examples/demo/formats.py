"""Step 5: the messages of the topic in every format and back, without Spark."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from report import Report

from letterhead import arrow as lha

# Kafka does not store types, so they have to be given.
NUMBERS = {"amount_cents": "int64", "retry": "int32", "weight_kg": "float64"}
BINARY = ("__value_schema_id", "blob")
HEADERS, MESSAGE = "kip82-typed", "kip82-message"  # carry all that the topic has
TARGETS = {
    HEADERS: ["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023"],
    MESSAGE: [
        "streams", "streams-timestamped", "kip82-wrapper", "kip82-message", "kip82-message-int",
        "kip82-message-wrapper", "iggy-message-2023", "iggy-message",
    ],
}  # fmt: skip
STEP = 1 << 16  # more headers than a message has


def every_format(topic: Path, report: Report) -> None:
    """Convert the topic to every format and back; what is not reported as lost must be the same."""
    table = pq.read_table(topic).combine_chunks()
    messages = _messages(table)
    headers = messages.field("headers")
    keys = set(headers.flatten().field("key").to_pylist())
    types = {key: NUMBERS.get(key, "binary" if key in BINARY else "string") for key in keys}
    encoded = {HEADERS: lha.encode(headers, HEADERS, types=types), MESSAGE: lha.encode(messages, MESSAGE, types=types)}
    rows, wrong = [], []
    for source, targets in TARGETS.items():
        before = lha.decode(encoded[source], source, errors="column")
        with report.timed(f"{source} to {len(targets)} formats and back", 2 * len(headers.flatten()) * len(targets)):
            converted = [_converted(encoded[source], source, target) for target in targets]
        for target, (data, losses, back) in zip(targets, converted, strict=True):
            after = lha.decode(back, source, errors="column")
            wrong += [f"{target}: {name}" for name in _changed(before, after, data, losses)]
            size = pc.sum(pc.binary_length(data)).as_py()
            rows.append([target, size, len(after.field("headers").flatten()), _shown(_lost(losses), len(data))])
    report.step(
        "6  the same headers in every format",
        f"{len(headers.flatten()):,} headers, with types, to each format and back: five formats of headers, then eight "
        "of messages. What a target cannot carry is reported, and lost types are passed on the way back.",
        ["format", "bytes", "headers", "not carried"],
        rows,
    )
    report.figures["formats"] = rows
    report.check(not wrong, f"all that is not reported as lost is the same again {wrong or ''}".rstrip())


def _shown(lost: Counter[str], messages: int) -> str | None:
    return ", ".join(loss if count == messages else f"{count:,} {loss}" for loss, count in lost.items()) or None


def _messages(table: pa.Table) -> pa.StructArray:
    fields = {name: table[name].combine_chunks() for name in ("offset", "key", "headers", "value", "timestamp")}
    fields["timestamp"] = fields["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    computed = {"crc": pa.int64(), "magic": pa.int8(), "attributes": pa.int8(), "tombstone": pa.bool_()}
    fields |= {name: pa.nulls(len(table), type) for name, type in computed.items()}
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _converted(encoded: Any, source: str, target: str) -> tuple[Any, Any, Any]:
    """Convert there and back; the losses have the types that the target does not carry."""
    how = {} if target in TARGETS or target.startswith("iggy") else {"types": "be"}  # the others carry no types
    data, losses = lha.convert(encoded, source, target=target, on_loss="report", **how).flatten()
    lost = pa.table({name: losses.flatten().field(name) for name in ("key", "type")})
    types = {row["key"]: row["type"] for row in lost.drop_null().group_by(["key", "type"]).aggregate([]).to_pylist()}
    return data, losses, lha.convert(data, target, target=source, types=types or None, on_loss="report").field("data")


def _changed(before: Any, after: Any, data: Any, losses: Any) -> list[str]:
    """List what is neither the same as before nor reported as lost."""
    numbers, headers = _numbered(before.field("headers"))
    entries, rows = losses.flatten(), pc.list_parent_indices(losses)
    left_out = pc.and_(entries.field("header").is_valid(), entries.field("written").is_null())
    lost = pc.add(pc.multiply(rows, STEP), entries.field("header").cast(pa.int64())).filter(left_out)
    places = pa.array(range(len(data)), pa.int64())
    no_message = pc.is_in(pc.divide(numbers, STEP), places.filter(data.is_null()))
    kept = pa.table({"number": numbers, "header": headers}).filter(
        pc.invert(pc.or_(pc.is_in(numbers, lost), no_message))
    )
    came, same = _numbered(after.field("headers"))
    # Headers behind one that is left out have moved up: their order is compared, and their message.
    in_place = pc.divide(came, STEP).equals(pc.divide(kept["number"].combine_chunks(), STEP))
    changed = [] if in_place and same.equals(kept["header"].combine_chunks()) else ["headers"]
    emptied = rows.filter(
        pc.and_(entries.field("header").is_null(), pc.equal(entries.field("written"), "empty").fill_null(False))
    )
    fields = {name for name in ("offset", "timestamp", "key", "value") if before.type.get_field_index(name) >= 0}
    for name in fields - _lost(losses).keys():
        went = before.field(name)
        if name == "value":
            went = pc.if_else(pc.is_in(places, emptied), pa.scalar(b"", went.type), went)
        if not after.field(name).filter(data.is_valid()).equals(went.filter(data.is_valid())):
            changed.append(name)
    return changed


def _lost(losses: Any) -> Counter[str]:
    """Count losses by the field that is lost, or by their code."""
    entries = losses.flatten()
    pairs = zip(entries.field("code").to_pylist(), entries.field("message").to_pylist(), strict=True)
    return Counter(message.split()[0] if code == "field_not_carried" else code for code, message in pairs)


def _numbered(lists: Any) -> tuple[Any, Any]:
    """Return a number for every header, made of its message and its place, and the headers."""
    rows = pc.list_parent_indices(lists)
    starts = pc.subtract(lists.offsets, lists.offsets[0]).cast(pa.int64()).take(rows)
    return pc.add(pc.multiply(rows, STEP), pc.subtract(pa.array(range(len(rows)), pa.int64()), starts)), lists.flatten()
