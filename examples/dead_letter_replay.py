"""Replay dead letters: find failed records by the segments of a dead letter topic, and send them again unchanged.

Kafka Streams writes topic, partition and offset into the headers of a dead letter (KIP-1034). The records are read from the
segments of their own topic, with key, value and headers as they were sent, and written as one batch.

Needs pyarrow: pip install '.[arrow]' in a clone. Run: python examples/dead_letter_replay.py
"""

import tempfile
from collections import Counter
from pathlib import Path

import letterhead as lh

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"
ORDERS = SAMPLES / "orders-0"


def dead_letters() -> Path:
    """Make the segment of a dead letter topic, as an application leaves it that failed at some orders."""
    with lh.read.segments(ORDERS, columns=["offset", "timestamp", "key", "value", "headers"], end=2000) as reader:
        failed = [row for row in reader.read_all().to_pylist() if row["offset"] % 400 == 17]
    letters = []
    for row in failed:
        headers = lh.Headers((header["key"], header["value"]) for header in row.pop("headers") or [])
        why = "IllegalStateException" if row["offset"] < 1000 else "TimeoutException"
        for key, value in [
            ("exception", why),
            ("topic", "orders"),
            ("partition", "0"),
            ("offset", str(row.pop("offset"))),
        ]:
            headers.add(f"__streams.errors.{key}", value)
        timestamp = round(row.pop("timestamp").timestamp() * 1000)
        letters.append({**row, "timestamp": timestamp, "headers": headers})
    folder = Path(tempfile.mkdtemp()) / "orders-dlq-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(lh.batch(letters, codec="zstd"))
    return folder


# What failed, and why: the columns of the convention, typed.
with lh.read.segments(dead_letters(), columns=["offset"], headers=lh.profile("streams-dlq")) as reader:
    letters = reader.read_all().to_pylist()
print("dead letters:", dict(Counter(row["exception_class"] for row in letters)))

# Only timeouts are sent again. Each record is read by its offset, which the index of the segment locates.
again = []
for row in letters:
    if row["exception_class"] == "TimeoutException":
        offset = row["original_offset"]
        folder = SAMPLES / f"{row['original_topic']}-{row['original_partition']}"
        with lh.read.segments(folder, columns=["key", "value", "headers"], start=offset, end=offset + 1) as reader:
            [record] = reader.read_all().to_pylist()
        headers = [(header["key"], header["value"]) for header in record["headers"] or []]
        again.append({"key": record["key"], "value": record["value"], "headers": headers})
        print("again:", offset, record["key"].decode(), len(headers), "headers")

# A batch as a producer sends it and a segment stores it.
batch = lh.batch(again, codec="lz4")
sent = list(lh.messages(batch, "record-batch"))
print(
    "no mark of the dead letter is left:",
    not any("__streams" in key for message in sent for key, _ in message.headers.items()),
)
