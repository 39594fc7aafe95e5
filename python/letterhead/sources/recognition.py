"""Recognize sources: addresses by their scheme, files by their content rather than their names."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypeGuard
from urllib.parse import unquote

from letterhead._arrow_types import ArrowStream
from letterhead._object_paths import is_object_url
from letterhead._parquet_files import tables_of
from letterhead.kafka.log_directory import has_kafka_batch, has_segment_name
from letterhead.sources import iggy, kafka
from letterhead.sources.base import Logins, Source
from letterhead.sources.kafka import SCHEME
from letterhead.sources.table_files import STANDARD_INPUT
from letterhead.sources.tables import ArrowTable, TableFile

__all__ = ["SourceLike", "open_sources"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

_TOPIC = re.compile(r"[\w-]+")
"""Pattern of missing file names that may be meant as topics."""


SourceLike: TypeAlias = str | os.PathLike[str] | ArrowStream
"""A source in the form that callers pass: a name, or an Arrow table or stream."""


def open_sources(arguments: Sequence[SourceLike], logins: Logins | None = None) -> list[Source]:
    """Return the sources for arguments, in order; an argument is a name or an Arrow table or stream.

    All log files form one source, because the files of a partition belong together.

    Raises
    ------
    TypeError
        If an argument is neither a name nor an Arrow table or stream.
    OSError
        If a file or directory does not exist, or cannot be read.
    """
    sources: list[Source] = []
    log_files: list[Path] = []
    for argument in arguments:
        if is_arrow_stream(argument):
            sources.append(ArrowTable(argument))
            continue
        name = _text(argument)
        path = Path(name)
        if is_object_url(name):
            sources.append(TableFile(name))
        elif _SCHEME.match(name):
            sources.append(_topic(name, logins or Logins()))
        elif name != STANDARD_INPUT and path.is_dir():
            sources.append(_directory(path))
        elif name != STANDARD_INPUT and not path.exists():
            hint = f"; a topic is {SCHEME}host:port/{name}" if _TOPIC.fullmatch(name) else ""
            raise FileNotFoundError(errno.ENOENT, f"no such file or directory{hint}", name)
        elif name != STANDARD_INPUT and is_log_file(path):
            log_files.append(path)
        else:
            sources.append(TableFile(name))
    if log_files:
        sources.append(_segments(log_files))
    return sources


def is_arrow_stream(argument: object) -> TypeGuard[ArrowStream]:
    """Return whether an argument is a table or stream of any Arrow library."""
    return hasattr(argument, "__arrow_c_stream__")


def _text(name: object) -> str:
    if not isinstance(name, str | os.PathLike):
        raise TypeError(
            f"a source must be a path, an address such as {SCHEME}host:port/topic, or an Arrow table, not {type(name).__name__}"
        )
    return os.fspath(name)


def _topic(name: str, logins: Logins) -> Source:
    if kafka.is_kafka_address(name):
        return kafka.kafka_source(name, logins)
    if iggy.is_iggy_address(name):
        return iggy.iggy_source(name, logins)
    scheme, _, path = name.partition("://")
    if scheme.lower() == "file":
        raise ValueError(f"no source begins with file://: pass the path {unquote(path)}")
    raise ValueError(
        f"no source begins with {scheme}://: use kafka://host:port/topic, kafka://host:port for the topics, "
        "iggy://host:port/stream/topic, or s3://bucket/path for tables"
    )


def _directory(path: Path) -> Source:
    if _has_stores(path):
        from letterhead.sources.stores import StateStores

        return StateStores(path)
    # Other programs write text files with the extension .log.
    if any(has_segment_name(log) for log in path.rglob("*.log")):
        return _segments([path])
    if tables_of(path):
        return TableFile(str(path))
    if any(path.rglob("*.log")):
        return _segments([path])
    raise FileNotFoundError(
        f"{path} has no log segments (00000000000000000000.log and the like), no partitions (directories such as "
        "orders-0), no state store, and no Parquet files (.parquet)"
    )


def _has_stores(path: Path) -> bool:
    # Each RocksDB database has this file; searching for it is faster than importing the stores.
    if next(path.rglob("CURRENT"), None) is None:
        return False
    from letterhead.errors import StoreNotFoundError
    from letterhead.state.reading.directory import find_stores

    try:
        find_stores(path)
    except StoreNotFoundError:
        return False
    return True


def _segments(paths: list[Path]) -> Source:
    from letterhead.iggy.segments import is_iggy_log
    from letterhead.sources.segments import IggySegmentsSource, KafkaSegmentsSource

    first = paths[0]
    named = first if len(paths) == 1 else paths
    logs = sorted(first.rglob("*.log")) if first.is_dir() else [first]
    return IggySegmentsSource(named) if any(map(is_iggy_log, logs[:1])) else KafkaSegmentsSource(named)


def is_log_file(path: Path) -> bool:
    """Return whether a file is a log segment, by its name or its first batch."""
    if path.suffix == ".log":
        return True
    return path.is_file() and has_kafka_batch(path)
