"""Headers in Spark: functions from DataFrame to DataFrame, for ``df.transform``, and one header as a column.

Examples
--------
>>> from letterhead import spark as lhs
>>> orders.transform(lhs.select_headers("headers", "kafka", {"tenant": "string"}, keep=["offset"]))
DataFrame[offset: bigint, tenant: string]
>>> orders.where(lhs.header("headers", "tenant", "string") == "acme").count()
1390
"""

from letterhead.spark.columns import header
from letterhead.spark.transforms import decode_headers, encode_headers, select_headers

__all__ = ["decode_headers", "encode_headers", "header", "select_headers"]
