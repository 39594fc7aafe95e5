"""Continue W3C traces through a consumer that produces: same trace, new parent, other headers unchanged.

Each record gets a `traceparent` of its own (https://www.w3.org/TR/trace-context/): the same trace id, a new parent id. A record
without one, or with an invalid one, begins a new trace. `tracestate` and all other headers are passed on unchanged.

Needs pyarrow and numpy: pip install '.[arrow]' in a clone. Run: python examples/traceparent.py
"""

import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import letterhead as lh
from letterhead import arrow as lha

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"

with lh.read.segments(SAMPLES / "orders-0", columns=["headers"], headers={"traceparent": "binary"}) as reader:
    orders = reader.read_all().combine_chunks()
headers, traceparent = orders["headers"].combine_chunks(), orders["traceparent"].combine_chunks()

# The whole column is taken apart and checked at once. What is no traceparent is null.
incoming = lha.traceparent(traceparent, errors="null")
trace_ids = incoming.field("trace_id")
print("with a trace:", len(incoming) - incoming.null_count, "of", len(incoming))

# The spans of this consumer, one a record.
spans = [secrets.token_hex(8) for _ in range(len(incoming))]
flags = incoming.field("flags")
outgoing = [
    f"00-{trace or secrets.token_hex(16)}-{span}-{flag or '01'}".encode()
    for trace, span, flag in zip(trace_ids.to_pylist(), spans, flags.to_pylist(), strict=True)
]

# In place of the old header, wherever that stood; repeated keys and nulls around it stay what they are.
forwarded = []
for row, new in zip(headers.to_pylist(), outgoing, strict=True):
    kept = [header for header in row or [] if header["key"] != "traceparent"]
    forwarded.append([{"key": "traceparent", "value": new}, *kept])
sent = pa.array(forwarded, headers.type)

# What the next consumer sees.
seen = lha.traceparent(lha.select(sent, {"traceparent": "binary"}).field("traceparent"))
had_one = pc.is_valid(trace_ids)
same = pc.equal(seen.field("trace_id"), trace_ids)
print("same trace id:", pc.sum(same).as_py(), "| new traces:", pc.sum(pc.invert(had_one)).as_py())
print("parents are our spans:", seen.field("parent_id").to_pylist() == spans)
print("sampled:", pc.sum(pc.filter(seen.field("sampled"), had_one)).as_py())
others = [[header for header in row or [] if header["key"] != "traceparent"] for row in headers.to_pylist()]
print("all other headers are as they were:", [row[1:] for row in forwarded] == others)
