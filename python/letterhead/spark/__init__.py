"""Read, write and edit message headers in Spark: functions of a DataFrame, and one header as a column.

Each function takes the DataFrame first, so calls can be chained: ``df.transform(lhs.edit_headers, drop=["debug"])``.

Examples
--------
>>> from letterhead import spark as lhs
>>> lhs.select_headers(orders, {"tenant": "string"}, keep=["offset"])
DataFrame[offset: bigint, tenant: string]
>>> orders.where(lhs.header("headers", "tenant", "string") == "acme").count()
1390
"""

from letterhead._optional_dependencies import install_hint

with install_hint("letterhead.spark", "letterhead[pyspark]"):
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401

from letterhead.spark.changelog import changelog_table
from letterhead.spark.compaction import compact
from letterhead.spark.conventions import amqp, rfc3339, schema_id, trace_links, traceparent
from letterhead.spark.copying import copy_topic
from letterhead.spark.decoding import decode_by_schema
from letterhead.spark.doctor import doctor
from letterhead.spark.edits import edit_headers
from letterhead.spark.header_column import header
from letterhead.spark.header_functions import (
    convert_headers,
    decode_headers,
    encode_headers,
    explode_batches,
    select_headers,
    where_headers,
)
from letterhead.spark.header_sql import header_columns, sql, sql_pack
from letterhead.spark.packing import pack_headers
from letterhead.spark.restore import restore_stores
from letterhead.spark.scan import scan_headers
from letterhead.spark.show import show_headers
from letterhead.spark.sources import register
from letterhead.spark.sources.options import options
from letterhead.spark.topology import run_topology

__all__ = [
    "amqp",
    "changelog_table",
    "compact",
    "convert_headers",
    "copy_topic",
    "decode_by_schema",
    "decode_headers",
    "doctor",
    "edit_headers",
    "encode_headers",
    "explode_batches",
    "header",
    "header_columns",
    "options",
    "pack_headers",
    "register",
    "restore_stores",
    "rfc3339",
    "run_topology",
    "scan_headers",
    "schema_id",
    "select_headers",
    "show_headers",
    "sql",
    "sql_pack",
    "trace_links",
    "traceparent",
    "where_headers",
]


def __dir__() -> list[str]:
    return __all__
