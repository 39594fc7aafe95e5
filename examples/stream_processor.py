"""A stream processor that keeps headers in its state store: duplicates are found by a header, and the store survives.

Orders arrive more than once. The store keeps the last order of each key with its headers (KIP-1271), so a duplicate is found
by its `ce_id`, and a forwarded order names the one it replaces. Orders without a `ce_id` are always forwarded, and so are
deletes, which leave nothing in the store.

Needs rocksdict and pyarrow: pip install '.[state,arrow]' in a clone. Run: python examples/stream_processor.py
"""

import tempfile
from pathlib import Path

import letterhead as lh
from letterhead.state import (
    BytesSerde,
    Processor,
    Stores,
    StringSerde,
    Topology,
    TopologyTestDriver,
    ValueTimestampHeaders,
)

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"


class Latest(Processor):
    """Keep the last order of each key, and drop what was seen."""

    def init(self, context):
        super().init(context)
        self.orders = context.get_state_store("orders")

    def process(self, record):
        before = self.orders.get(record.key)
        replaced = None if before is None else before.headers.get("ce_id")
        if replaced is not None:
            if record.headers.get("ce_id") == replaced:
                return
            record = record.with_headers(record.headers)  # a copy: those of the record belong to whoever sent it
            record.headers.add("replaces", replaced)
        self.orders.put(record.key, ValueTimestampHeaders.make(record.value, record.timestamp, record.headers))
        self.context.forward(record)


text, raw = StringSerde(), BytesSerde()
store = Stores.persistent_timestamped_key_value_store_with_headers("orders")
topology = Topology().add_source("source", "orders").add_processor("latest", Latest, "source")
topology = topology.add_state_store(
    Stores.timestamped_key_value_store_with_headers_builder(store, text, raw), "latest"
).add_sink("sink", "orders-once", "latest")

with lh.read.segments(SAMPLES / "orders-0", columns=["timestamp", "key", "value", "headers"], end=2000) as reader:
    records = reader.read_all().to_pylist()

state = Path(tempfile.mkdtemp())
driver = TopologyTestDriver(topology, application_id="dedup", state_directory=state, key_serde=text, value_serde=raw)
orders = driver.create_input_topic("orders")
for record in records:
    headers = [(header["key"], header["value"]) for header in record["headers"] or []]
    for _ in range(2):  # a producer that sends everything twice
        orders.pipe_input(
            record["key"].decode(), record["value"], round(record["timestamp"].timestamp() * 1000), headers
        )
out = driver.create_output_topic("orders-once").read_records()
replacing = sum("replaces" in record.headers for record in out)
print(f"{2 * len(records)} records in, {len(out)} out, {replacing} of them replace one")
driver.close(keep_state=True)

# The store's files, in Kafka Streams' own layout, when the processor is gone.
with lh.read.state(state / "dedup", headers={"tenant": "string", "replaces": "string"}) as reader:
    kept = reader.read_all()
print(f"{kept.num_rows} keys are kept, {kept.num_rows - kept['replaces'].null_count} of them replaced another order")
