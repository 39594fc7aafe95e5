"""The screen of `letterhead demo`: one small table for each step, each with a line that says what it shows."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable, spaced_hex
from letterhead.cli.render import counted, table

# Some traceparents differ only near the end; the first part is enough to see what they are.
TRACEPARENT_SHOWN = 20
# Enough of a record as it came to see that it was bytes: text, and two numbers.
RAW_SHOWN = ("tenant", "retry", "amount_cents")
TYPED_SHOWN = ("tenant", "retry", "amount_cents", "weight_kg", "route", "note")
# Losses that all messages have: how many there are says nothing.
UNCOUNTED = ("kinds", "offset", "timestamp", "key")


def show(screen: Console, report: dict[str, Any]) -> None:
    """Print the whole report."""
    screen.print(Text(f"letterhead {report['letterhead']} on Spark {report['spark']}, local[2]", style="bold"))
    _say(
        screen,
        "Messages carry headers beside their payload: keys and raw bytes. letterhead turns them into typed columns, "
        "says what is wrong and where when bytes are broken, and writes headers back without loss.",
    )
    _topic(screen, report)
    _store(screen, report)
    _there_and_back(screen, report)
    _tenants(screen, report)
    _times(screen, report)
    _formats(screen, report)
    _end(screen, report)


def _topic(screen: Console, report: dict[str, Any]) -> None:
    topic = report["topic"]
    right = ("offset", "retry", "amount_cents")
    view = table("offset", "tenant", "retry", "amount_cents", "traceparent", "route", right=right)
    for row in topic["sample"]:
        view.add_row(
            f"{row['offset']}",
            _cell(row["tenant"]),
            _cell(row["retry"]),
            _cell(row["amount_cents"]),
            _folded(row["traceparent"]),
            _cell(", ".join(row["route"]) if row["route"] else None),
        )
    raw = Text(
        f"record {topic['raw']['offset']} came with {counted(len(topic['raw']['headers']), 'header')}: ", style="dim"
    )
    shown = [(h["key"], h["value"]) for h in topic["raw"]["headers"] if h["key"] in RAW_SHOWN]
    for key, value in shown:
        raw.append(f"{printable(key)} = ").append(spaced_hex(bytes.fromhex(value)), style="cyan").append(", ")
    _step(
        screen,
        "1  headers become typed columns",
        view,
        f"The topic `orders` as Spark's Kafka source gives it: {topic['records']:,} records, "
        f"{topic['headers']:,} headers. {counted(topic['without_headers'], 'record')} had none; "
        "`route` repeats, and is a list.",
        before=raw.append("…"),
    )


def _store(screen: Console, report: dict[str, Any]) -> None:
    store = report["store"]
    view = table("damage", "done", "found", "code", "example", right=("done", "found"))
    for kind in store["kinds"]:
        example = kind["example"]
        view.add_row(
            kind["kind"],
            f"{kind['damaged']:,}",
            _tick(kind["found"], kind["found"] == kind["damaged"]),
            kind["code"],
            "" if example is None else _fault(example),
        )
    all_found = (
        not store["missed"] and not store["unexpected"] and all(k["found"] == k["damaged"] for k in store["kinds"])
    )
    view.add_section()
    view.add_row("all", f"{store['damaged']:,}", _tick(store["set_aside"], all_found), "", "")
    _step(
        screen,
        "2  broken bytes are set aside, and say what is wrong",
        view,
        f"A Kafka Streams store (KIP-1271) of {store['cells']:,} cells, {store['damaged']:,} of them damaged "
        f"on purpose: {store['whole']:,} became rows, {store['set_aside']:,} went to a quarantine table with bytes "
        "and reason. "
        "`found` counts those where the very byte that was damaged was named. The job went on.",
    )


def _there_and_back(screen: Console, report: dict[str, Any]) -> None:
    back = report["there_and_back"]
    view = table("records of the topic", "written", "read back as", "right", right=("written", "right"))
    rows = (
        (
            "with headers",
            back["with_value"] - back["without_headers"],
            "the same headers, timestamp and value",
            back["equal"],
        ),
        ("without headers", back["without_headers"], "an empty list of headers", back["without_headers_as_empty"]),
        ("tombstones (null value)", back["tombstones"], "a null cell, as a store deletes", back["tombstones_as_null"]),
    )
    for what, written, result, right in rows:
        view.add_row(what, f"{written:,}", result, _tick(right, right == written))
    view.add_section()
    total = back["records"]
    view.add_row("all", f"{total:,}", "", _tick(total - back["different"], back["different"] == 0))
    _step(
        screen,
        "3  headers become bytes, and come back",
        view,
        "The topic written as Kafka Streams stores it, read again, and compared record by record: "
        f"{back['different']:,} differ. A tombstone has no cell to keep headers in: the loss of "
        f"{back['tombstone_headers']:,} headers on {counted(back['losses_reported'], 'tombstone')} was reported, "
        "row by row.",
    )


def _tenants(screen: Console, report: dict[str, Any]) -> None:
    view = table("tenant", "orders", "amount", right=("orders", "amount"))
    for row in report["tenants"]:
        name = Text("(no headers)", style="dim") if row["tenant"] is None else Text(printable(row["tenant"]))
        view.add_row(name, f"{row['orders']:,}", _money(row["amount_cents"]))
    view.add_section()
    orders = sum(row["orders"] for row in report["tenants"])
    view.add_row("all", f"{orders:,}", _money(sum(row["amount_cents"] or 0 for row in report["tenants"])))
    _step(
        screen,
        "4  and then it is plain SQL",
        view,
        "A group-by over two headers: orders and amount by tenant, from the whole rows of the store.",
    )


def _times(screen: Console, report: dict[str, Any]) -> None:
    view = table("step", "seconds", "headers", "headers/s", right=("seconds", "headers", "headers/s"))
    for row in report["times"]:
        rate = row["headers_per_second"]
        view.add_row(
            row["step"],
            f"{row['seconds']:.3f}",
            "" if row["headers"] is None else f"{row['headers']:,}",
            "" if rate is None else f"{float(f'{rate:.2g}'):,.0f}",
        )
    _step(
        screen,
        "5  time",
        view,
        "Each step reads and writes Parquet, once, cold: at this size that is nearly all of its time. The last "
        "two lines are the library alone, on one thread: step 2's decoding, the best of five, and step 6, which "
        "converts bytes to bytes.",
    )


def _formats(screen: Console, report: dict[str, Any]) -> None:
    found = report["formats"]
    view = table("format", "record", "topic", "headers", "not carried", right=("record", "topic", "headers"))
    before = "block"
    for row in found["rows"]:
        if row["is"] != before:
            view.add_section()
            before = row["is"]
        lost = ", ".join(_lost(each["what"], each["count"]) for each in row["not_carried"])
        headers = _tick(row["headers"], row["equal"])
        view.add_row(row["format"], f"{row['record_bytes']:,}", f"{row['bytes']:,}", headers, lost or "–")
    record = found["record"]
    shown = [(h["key"], h["value"]) for h in record["headers"] if h["key"] in TYPED_SHOWN]
    typed = Text(f"record {record['offset']}: ", style="dim")
    for key, value in shown:
        typed.append(f"{printable(key)} = ").append(printable(value or "null"), style="cyan").append(", ")
    _step(
        screen,
        "6  the same headers in every format",
        view,
        f"The {found['headers']:,} headers of the topic, with kinds, from bytes to bytes and back: above the line headers "
        "alone, below it whole messages; sizes in bytes. What a target cannot carry is a loss, and reported; lost kinds "
        "are handed back. ✓: every other header came back equal, kind and bits, and so did every other field.",
        before=typed.append("…"),
    )


def _end(screen: Console, report: dict[str, Any]) -> None:
    verdict = (
        Text("Some checks failed:", style="bold red")
        if report["failures"]
        else Text("Every check held.", style="bold green")
    )
    screen.print(verdict)
    for failure in report["failures"]:
        screen.print(Text(f"  {printable(failure)}", style="red"))
    screen.print(Text(f"Parquet and Spark's log are in {printable(report['out'])}."))
    examples = {kind["code"]: kind["example"] for kind in report["store"]["kinds"] if kind["example"]}
    # This one is marked in the middle of bytes that are whole; any other will do.
    example = examples.get("key_not_utf8") or next(iter(examples.values()), None)
    if example is not None:
        screen.print(Text("Look at a damaged cell yourself:"))
        path = printable(report["files"]["store-damaged"])
        command = f"  letterhead inspect {path} -c value --row {example['row']} -f streams-timestamped"
        screen.print(Text(command, style="cyan"), soft_wrap=True)


def _step(screen: Console, title: str, view: Table, meaning: str, *, before: Text | None = None) -> None:
    screen.print(Text(title, style="bold"))
    if before is not None:
        screen.print(before)
    screen.print(view)
    _say(screen, meaning)


def _say(screen: Console, text: str) -> None:
    screen.print(Text(text, style="dim"))
    screen.print()


def _cell(value: Any) -> Text:
    return Text("–", style="dim") if value is None else Text(printable(str(value)))


def _folded(text: str | None) -> Text:
    if text is None or len(text) <= TRACEPARENT_SHOWN:
        return _cell(text)
    return Text(printable(text[:TRACEPARENT_SHOWN]) + "…")


def _fault(fault: dict[str, Any]) -> Text:
    place = [f"byte {fault['byte']}"] if fault["byte"] is not None else []
    place += [f"header {fault['header']}"] if fault["header"] is not None else []
    return Text(f"{printable(fault['message'])} ({', '.join(place)})")


def _lost(what: str, count: int) -> str:
    return what if what in UNCOUNTED else f"{count:,} {what.removesuffix(' values')}"


def _tick(number: int, right: bool) -> Text:
    return Text(f"{number:,} ✓" if right else f"{number:,} ✗", style="green" if right else "bold red")


def _money(cents: int | None) -> str:
    if cents is None:
        return "–"
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02}"
