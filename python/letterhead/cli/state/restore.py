"""`letterhead state restore`: rebuild the directory of a store from its changelog."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

from letterhead._formatting import printable
from letterhead._times import read_time
from letterhead.cli.exits import OK, Failure
from letterhead.cli.progress import progress
from letterhead.cli.render import SETTINGS, count_text, print_json, warn
from letterhead.cli.screen import console
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.options import ChangelogSource
from letterhead.state.restoring.restore import Start, restore


def run_restore(
    source: ChangelogSource,
    directory: str,
    store: str,
    *,
    store_type: str,
    layout: str,
    partition: int | None,
    start: str | None,
    end: str | None,
    json: bool,
    **options: Any,
) -> int:
    """Restore a store with the options of :func:`restore`, and print its location."""
    started = time.monotonic()
    if (store_type, layout) == ("versioned", "headers"):
        warn("Kafka Streams has no versioned store with headers, and will not open the directory: see --layout plain")
    with reading_errors(), progress(_total(source), "restoring", prints=False) as advance:
        stop = _end(end)
        try:
            done = restore(
                open_changelog(source, partition),
                directory,
                store,
                store_type=store_type,  # type: ignore[arg-type]
                layout=layout,  # type: ignore[arg-type]
                retention=source.retention,
                segment_interval=source.segment_interval,
                partition=partition,
                start=first_offsets(source, partition, store_type, stop) if start is None else _start(start),
                end=stop,
                progress=advance,
                **options,
            )
        except FileExistsError as error:
            raise Failure(str(error)) from error
    if json:
        print_json(
            [
                {"partition": number, "directory": str(path.absolute()), "offset": done.offsets[number]}
                for number, path in done.directories.items()
            ]
        )
        return OK
    screen = console()
    for number, path in done.directories.items():
        last = f"up to offset {done.offsets[number]:,}" if done.offsets[number] >= 0 else "without a record"
        screen.print(printable(f"{path}: partition {number} {last}"), soft_wrap=True)
    screen.print(f"{count_text(done.records, 'record')} in {time.monotonic() - started:.1f} s", style="dim")
    return OK


def _end(text: str | None) -> int | datetime | None:
    """Parse the end: an offset, or a time."""
    if text is None:
        return None
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        return read_time(text, SETTINGS.zone)
    except ValueError:
        raise Failure(f"--end: {text!r} is neither an offset nor a time like 2026-01-01T08:30:00Z") from None


def _start(text: str) -> Start:
    """Parse the start."""
    if text == "earliest":
        return "earliest"
    if not text.isascii() or not text.isdecimal():
        raise Failure('--start is "earliest" or an offset')
    return int(text)


def first_offsets(
    source: ChangelogSource, partition: int | None, store_type: str, end: int | datetime | None
) -> dict[int, int] | None:
    """Return the first offset that Kafka Streams 4.4 reads of a topic; None for sources where `restore` finds it."""
    if source.brokers is None or store_type in ("key-value", "versioned") or not source.retention:
        return None
    from letterhead.state.restoring.first_offsets import topic_retained_from

    return topic_retained_from(source.path, source.brokers, source.retention, partition, end)


def open_changelog(source: ChangelogSource, partition: int | None = None) -> Any:
    """Return the source of a changelog, for `letterhead.state.restore`."""
    if source.brokers is None:
        return Path(source.path)
    from letterhead.read import topic

    return topic(
        source.path,
        settings=source.brokers,
        columns=["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
        partitions=None if partition is None else [partition],
        isolation_level="read_committed",
        batch_bytes=8 << 20,  # fewer and larger batches are encoded faster
    )


def _total(source: ChangelogSource) -> int | None:
    path = Path(source.path)
    if source.brokers is not None or not (path.is_file() if path.suffix == ".parquet" else path.is_dir()):
        return None
    from letterhead._parquet_files import parquet_table

    return parquet_table(path).rows or None
