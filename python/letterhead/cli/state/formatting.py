"""Format rows of stores for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.document import headers_json, time_json, value_json
from letterhead.cli.headers import VALUE_LIMIT, headers_table
from letterhead.cli.screen import format_with_size, time_text, value_text
from letterhead.state.reading.directory import StoreFiles
from letterhead.state.reading.rows import StoreRow
from letterhead.state.reading.store_types import DetectedType


def store_json(files: StoreFiles) -> dict[str, Any]:
    """Return the name, task and directory of a store as JSON values."""
    return {"store": files.name, "task": files.task or None, "directory": str(files.directory)}


def row_json(files: StoreFiles, store_type: DetectedType, row: StoreRow, *, epoch_ms: bool) -> dict[str, Any]:
    """Return a row as JSON values, in the form of `read --json`."""
    document: dict[str, Any] = {"store": files.name}
    if files.task:
        document["task"] = files.task
    document |= {"key": value_json(row.key), **times_json(row.times, epoch_ms=epoch_ms)}
    if row.sequence is not None:
        document["sequence"] = row.sequence
    if store_type.has_timestamps:
        document |= times_json({"timestamp": row.timestamp}, epoch_ms=epoch_ms)
    document["value"] = value_json(row.value)
    if store_type.value_format == "headers":
        document["headers"] = None if row.headers is None else headers_json(row.headers)
    return document


def times_json(times: Mapping[str, int | None], *, epoch_ms: bool) -> dict[str, Any]:
    """Return the times of a row as JSON values."""
    return {name: None if time is None else time_json(time, epoch_ms=epoch_ms) for name, time in times.items()}


def time_field(time: int | None, *, epoch_ms: bool) -> str:
    """Return a time for a table."""
    return "" if time is None else str(time_json(time, epoch_ms=epoch_ms))


def show_row(screen: Console, files: StoreFiles, store_type: DetectedType, row: StoreRow, *, everything: bool) -> None:
    """Print all fields of one row."""
    limit = None if everything else VALUE_LIMIT
    screen.print(Text(f"{printable(files.label)}: {store_type}", style="bold"))
    screen.print(Text.assemble("key: ", value_text(row.key)))
    for name, time in row.times.items():
        screen.print(
            Text.assemble(f"{name.replace('_', ' ')}: ", value_text(None) if time is None else time_text(time))
        )
    if row.timestamp is not None:
        screen.print(Text.assemble("timestamp: ", time_text(row.timestamp)))
    screen.print(Text.assemble("value: ", format_with_size(row.value, limit)))
    if row.headers is not None:
        no_headers = Text("no headers", style="dim")
        screen.print(headers_table(row.headers, limit=limit) if row.headers else no_headers)
