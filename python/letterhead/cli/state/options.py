"""Options by which the commands of `letterhead state` select stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from letterhead.cli.brokers import BrokerSettings, brokers
from letterhead.cli.completion import complete_stores
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import group_options, limits, option
from letterhead.cli.sources.opening import AskedLogins
from letterhead.limits import Limits
from letterhead.sources.kafka import KafkaAddress, is_kafka_address


class ChangelogSource(NamedTuple):
    """Changelog of a store, or another directory, with the retention of its rows in milliseconds.

    With brokers, the path is the name of a topic, or empty for the topics of the stores.
    """

    path: str
    brokers: BrokerSettings | None
    retention: int | None = None
    segment_interval: int | None = None


class Selection(NamedTuple):
    """Stores for a command, and options for reading them."""

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
        "Store type, if the files leave it open: key-value, window, session, versioned, time-ordered-window, time-ordered-session.",
        "TYPE",
    ),
]
Values = Annotated[
    str | None,
    option(
        "--values", "Values of time-ordered windows without headers: plain, or timestamped (the default).", "VALUES"
    ),
]


Retention = Annotated[int | None, option("--retention", "How long the store keeps rows, if they expire.", "MS", min=0)]
SegmentInterval = Annotated[
    int | None, option("--segment-interval", "Length of a segment, if not the default.", "MS", min=1)
]


def stores(directory: Dir, store: Name = None, store_type: StoreType = None, values: Values = None) -> Selection:
    """Return the stores to read."""
    return Selection(directory, store, store_type, values)


@group_options(selection=stores, limits=limits)
def limit_stores(*, selection: Selection, limits: Limits) -> Selection:
    """Return the stores to read, with limits."""
    return selection._replace(limits=limits)


@group_options(brokers=brokers)
def changelog(
    *,
    changelog: Annotated[
        str,
        typer.Argument(
            metavar="CHANGELOG", help="A Parquet file, log segments, or a topic: kafka://host:port/topic, or its name."
        ),
    ],
    brokers: BrokerSettings | None,
    retention: Retention = None,
    segment_interval: SegmentInterval = None,
) -> ChangelogSource:
    """Return the changelog."""
    if is_kafka_address(changelog):
        topic, brokers = _parse_address(changelog, brokers)
        if not topic:
            raise Failure("the address does not name a topic: kafka://host:port/topic")
        changelog = topic
    else:
        _check_named(brokers)
    return ChangelogSource(changelog, brokers, retention, segment_interval)


@group_options(brokers=brokers)
def changelogs(
    *,
    changelog: Annotated[
        str | None,
        option("--changelog", "Changelogs: segments, Parquet, or kafka://host:port for their topics.", "PATH"),
    ] = None,
    brokers: BrokerSettings | None,
) -> ChangelogSource | None:
    """Return the changelogs of several stores; with brokers, these are the topics of the stores."""
    if changelog is None:
        _check_named(brokers)
        return None if brokers is None else ChangelogSource("", brokers)
    if is_kafka_address(changelog):
        topic, brokers = _parse_address(changelog, brokers)
        if topic:
            raise Failure("--changelog: the stores name their topics: leave out the topic, as in kafka://host:port")
        return ChangelogSource("", brokers)
    if brokers is not None:
        raise Failure("--changelog and brokers exclude each other: give one of them")
    return ChangelogSource(changelog, None)


def _check_named(brokers: BrokerSettings | None) -> None:
    if brokers is not None and not brokers.keys() & {"bootstrap.servers", "metadata.broker.list"}:
        raise Failure("no brokers are named: pass --bootstrap-server, or set bootstrap.servers")


def _parse_address(text: str, brokers: BrokerSettings | None) -> tuple[str, BrokerSettings]:
    """Return the topic and the broker settings in an address."""
    with usage_errors():
        address = KafkaAddress.parse(text)
        if address.partition is not None:
            raise Failure("an address of a changelog has no partition: pass --partition")
        if address.servers is not None and brokers is not None and "bootstrap.servers" in brokers:
            raise Failure("the address and the settings both name brokers: leave one of them out")
        settings = AskedLogins().kafka_settings(brokers or {}, has_servers=address.servers is not None)
    if address.servers is not None:
        settings["bootstrap.servers"] = address.servers
    return address.topic or "", settings
