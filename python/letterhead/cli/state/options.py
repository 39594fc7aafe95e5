"""The options by which the commands of `letterhead state` select stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from letterhead.cli.brokers import BrokerSettings, brokers
from letterhead.cli.completion import complete_stores
from letterhead.cli.options import grouped, limits, option
from letterhead.limits import Limits


class ChangelogSource(NamedTuple):
    """The changelog of a store, or another directory, and how long its rows are kept in milliseconds."""

    path: str
    brokers: BrokerSettings | None
    retention: int | None
    segment_interval: int | None


class Selection(NamedTuple):
    """The stores that a command reads, and how."""

    directory: Path
    name: str | None
    store_type: str | None
    value_format: str | None = None
    limits: Limits | None = None


Dir = Annotated[Path, typer.Argument(metavar="DIR", help="A state, application, task or store directory.")]
Name = Annotated[str | None, option("--store -s", "Only stores of this name.", "NAME", autocompletion=complete_stores)]
StoreType = Annotated[
    str | None,
    option(
        "--store-type",
        "If the files do not tell: key-value, window, session, versioned, time-ordered-window, time-ordered-session.",
        "TYPE",
    ),
]
Values = Annotated[
    str | None,
    option("--values", "Of time-ordered windows without headers: plain, or timestamped (the default).", "VALUES"),
]


Retention = Annotated[int | None, option("--retention", "How long the store keeps rows, if they expire.", "MS", min=0)]
SegmentInterval = Annotated[
    int | None, option("--segment-interval", "Length of a segment, if not the default.", "MS", min=1)
]


def stores(directory: Dir, store: Name = None, store_type: StoreType = None, values: Values = None) -> Selection:
    """Return the stores to read."""
    return Selection(directory, store, store_type, values)


@grouped(selection=stores, limits=limits)
def limited_stores(*, selection: Selection, limits: Limits) -> Selection:
    """Return the stores to read, and limits."""
    return selection._replace(limits=limits)


@grouped(brokers=brokers)
def changelog(
    *,
    changelog: Annotated[str, typer.Argument(metavar="CHANGELOG", help="A Parquet file, log segments, or a topic.")],
    brokers: BrokerSettings | None,
    retention: Retention = None,
    segment_interval: SegmentInterval = None,
) -> ChangelogSource:
    """Return the changelog."""
    return ChangelogSource(changelog, brokers, retention, segment_interval)
