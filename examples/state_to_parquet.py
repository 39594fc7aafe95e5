"""From the state directory of a Kafka Streams application to Parquet, without a JVM, batch by batch.

Needs rocksdict and pyarrow: pip install '.[state,arrow]' in a clone. Run: python examples/state_to_parquet.py
Of your own: python examples/state_to_parquet.py /tmp/kafka-streams/my-app my-store out.parquet
"""

import sys
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import letterhead as lh

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"
arguments = sys.argv[1:] or [SAMPLES / "streams-state-0_0", "latest", Path(tempfile.mkdtemp()) / "latest.parquet"]
directory, store, out = arguments

# What a row of the store becomes. The headers stay beside the columns that are made of them.
stored = ["key", "timestamp", "value", "headers"]
columns = {"tenant": "string", "amount_cents": "int64", "trace": lh.field("string", key="traceparent")}

rows = lh.read.state(directory, store=store, columns=stored, headers=columns, errors="column")
with rows, pq.ParquetWriter(out, rows.schema) as writer:
    for batch in rows:  # at most 10,000 rows are in memory
        writer.write_batch(batch)

table = pq.read_table(out)
print(table.num_rows, "rows of", ", ".join(table.column_names))
print("damaged:", table.num_rows - table["error"].null_count)
totals = table.group_by("tenant").aggregate([("amount_cents", "sum")]).sort_by([("amount_cents_sum", "descending")])
print("most:", totals.slice(0, 1).to_pylist())
print("headers a row:", round(pc.mean(pc.list_value_length(table["headers"])).as_py(), 2))
