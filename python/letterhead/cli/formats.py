"""The table of formats: what commands look up in it, and `letterhead formats`, which prints it."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from rich.text import Text

from letterhead._formats import FormatInfo, format_table
from letterhead._names import unknown_name
from letterhead.cli.exits import OK, Failure
from letterhead.cli.render import console, print_json, table
from letterhead.limits import Limits

COMMON = ("kafka", "streams-timestamped", "iggy", "record-batch", "iggy-message")
"""The formats that help texts name; `letterhead formats` lists all."""

_SYSTEMS = {"kip82": "KIP-82 draft", "iggy": "Iggy", "streams": "Kafka Streams"}


class ReadArguments(TypedDict):
    """The options of every operation that reads."""

    lenient: bool
    strict_types: bool
    limits: Limits


def row_of(format: str) -> FormatInfo:
    """Return the row of a format; an unknown name ends the command."""
    rows = format_table()
    if format not in rows:
        suggestion, _, _ = str(unknown_name("format", format, rows)).partition(" (formats:")
        raise Failure(f"{suggestion} (`letterhead formats` lists all)")
    return rows[format]


def is_batch(format: str) -> bool:
    """Return whether a value of the format holds many messages."""
    return row_of(format).is_ == "batch"


def in_microseconds(format: str) -> bool:
    """Return whether the format's times are microseconds, as in Iggy, and not milliseconds."""
    return format.startswith("iggy")


def run_formats(*, json: bool) -> int:
    """Print all formats."""
    rows: list[dict[str, Any]] = [
        {
            "name": row.name,
            "class": row.is_,
            "system": _SYSTEMS.get(row.name.partition("-")[0], "Kafka"),
            "description": re.sub("^(KIP-82 draft|KIP-82 alternative|Apache Iggy),? ", "", row.source),
            "layout": row.layout,
            "fields": dict(row.fields),
            "writable": row.is_target,
        }
        for row in format_table().values()
    ]
    if json:
        print_json(rows)
        return OK
    view = table("name", "class", "system", "description", fold=True)
    view.columns[0].no_wrap = view.columns[2].no_wrap = True
    for row in rows:
        view.add_row(Text(row["name"], style="bold"), *(row[name] for name in ("class", "system", "description")))
    console().print(view)
    return OK
