"""Convert headers from Kafka to Apache Iggy and back: name types, list losses, verify that everything else is equal.

Needs pyarrow: pip install '.[arrow]' in a clone. Run: python examples/kafka_to_iggy.py
"""

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from letterhead import arrow as lha

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"

# Lists of headers, as from Spark's Kafka source. Kafka stores no types, so they are named here.
types = {
    **dict.fromkeys(["ce_id", "ce_source", "ce_specversion", "ce_type", "note", "route", "señal-📦"], "string"),
    **dict.fromkeys(["tenant", "traceparent", "tracestate"], "string"),
    **dict.fromkeys(["__value_schema_id", "blob"], "binary"),
    "retry": "int32",
    "amount_cents": "int64",
    "weight_kg": "float64",
}
headers = pq.read_table(SAMPLES / "orders-0.parquet")["headers"].combine_chunks()
blocks = lha.encode(headers, "kafka")

# Iggy cannot store null, empty or values above 255 bytes: each is reported and left out.
converted = lha.convert(blocks, "kafka", "iggy", types=types, on_loss="report")
losses = converted.field("losses").flatten().to_pylist()
print(Counter((loss["key"], loss["code"]) for loss in losses))

# Everything else has its type, and converts back byte for byte.
iggy = converted.field("data")
print(lha.select(iggy, {"tenant": "string", "amount_cents": "int64"}, format="iggy")[0].as_py())
back = lha.convert(iggy, "iggy", "kafka", types="be")
whole = pc.is_null(converted.field("losses"))
print(
    pc.sum(whole).as_py(), "messages without a loss, the same again:", back.filter(whole).equals(blocks.filter(whole))
)
