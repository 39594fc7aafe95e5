"""Move a topic to Apache Iggy: a segment of Kafka becomes the requests of an Iggy client, headers with their types.

Kafka stores no types, so `lha.scan` suggests them, and confident suggestions are used. What Iggy cannot store (null, empty, more than
255 bytes) is left out and counted. Iggy has no message keys: they become a header.

Needs pyarrow and numpy: pip install '.[arrow]' in a clone. Run: python examples/topic_to_iggy.py
"""

from collections import Counter
from pathlib import Path

import letterhead as lh
from letterhead import arrow as lha
from letterhead.iggy import Message, Partitioning, SendMessages

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"
IN_A_REQUEST = 1000

with lh.read.segments(SAMPLES / "orders-0", columns=["timestamp", "key", "value", "headers"]) as reader:
    topic = reader.read_all().combine_chunks()
topic = topic.set_column(
    0, "timestamp", topic["timestamp"].cast("int64")
)  # milliseconds, from which Iggy's times are made
headers = topic["headers"].combine_chunks()

# What are the values? A guess is used where it is strong and leaves no choice; all others go as bytes, which lose nothing.
types = {}
for key in lha.scan(headers, "kafka").keys:
    best = key.guesses[0]
    types[key.key] = best.type if best.confidence == "strong" else "binary"
print({name: type for name, type in types.items() if type not in ("string", "binary")})

converted = lha.convert(lha.encode(headers, "kafka"), "kafka", target="iggy", types=types, on_loss="report")
losses = Counter((loss["key"], loss["code"]) for row in converted.field("losses").to_pylist() for loss in row or [])
print("left out:", dict(sorted(losses.items())))

# A message without a payload is a delete in Kafka; Iggy has no such thing, and refuses it.
messages, deletes = [], 0
blocks = converted.field("data").to_pylist()
for block, row in zip(blocks, topic.drop(["headers"]).to_pylist(), strict=True):
    timestamp, key, value = row.values()
    if value is None:
        deletes += 1
        continue
    carried = lh.decode(block, "iggy")
    carried.add("kafka.key", lh.Binary(key))
    # Bytes and not a mapping, in which a repeated header would be there once.
    messages.append(Message(None, value, lh.encode(carried, "iggy"), origin_timestamp=timestamp * 1000))
print(len(messages), "messages,", deletes, "deletes are left")

requests = []
for start in range(0, len(messages), IN_A_REQUEST):
    part = messages[start : start + IN_A_REQUEST]
    requests.append(SendMessages("shop", "orders", Partitioning.partition_id(1), part).to_bytes("iggy"))
print(len(requests), "requests of", max(map(len, requests)), "bytes at most")

# What a server would find in the first one.
first = SendMessages.from_bytes(requests[0], "iggy").messages[0]
print(first.headers["amount_cents"].as_int64(), first.headers["tenant"].as_str(), first.headers["kafka.key"].as_raw())
