"""How far stores lag their changelogs: the end offset of each partition, from a broker or from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from letterhead.cli.exits import Failure

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["end_offsets"]


def end_offsets(places: Iterable[str], changelog: Path | None, bootstrap_server: str | None) -> dict[str, int]:
    """Return the offset after the last record of each ``topic-partition``, of those that the changelog has."""
    wanted = set(places)
    if changelog is not None and bootstrap_server is not None:
        raise Failure("--changelog and --bootstrap-server exclude each other: give one of them")
    if bootstrap_server is not None:
        return _of_broker(wanted, bootstrap_server)
    ends: dict[str, int] = {}
    for batch in () if changelog is None else _offsets(changelog):
        import pyarrow as pa

        groups = pa.Table.from_batches([batch]).group_by(["topic", "partition"]).aggregate([("offset", "max")])
        for row in groups.to_pylist():
            place = f"{row['topic']}-{row['partition']}"
            ends[place] = max(ends.get(place, 0), row["offset_max"] + 1)
    return {place: end for place, end in ends.items() if place in wanted}


def _of_broker(places: set[str], bootstrap_server: str) -> dict[str, int]:
    from letterhead.read.kafka_client import LATEST, Client
    from letterhead.read.kafka_options import FETCH_BYTES, TIMEOUT_MS, python_settings

    topics = sorted({place.rpartition("-")[0] for place in places})
    settings = python_settings(bootstrap_server, {}, timeout_ms=TIMEOUT_MS, fetch_bytes=FETCH_BYTES)
    with Client(settings) as client:
        found = [place for place in client.partitions(topics) if str(place) in places]
        ends = client.offsets(dict.fromkeys(found, LATEST), "read_committed")
    return {str(place): end for place, end in ends.items()}


def _offsets(path: Path) -> Iterator[pa.RecordBatch]:
    columns = ["topic", "partition", "offset"]
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as parquet:
            yield from parquet.iter_batches(columns=columns)
    else:
        from letterhead.read.open_segments import segments

        with segments(path, columns=columns) as reader:
            yield from reader
