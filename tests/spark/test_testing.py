"""``letterhead.testing.assert_headers_equal`` on DataFrames."""

from __future__ import annotations

import pytest

from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.testing import assert_headers_equal


def test_dataframes_and_columns_are_compared_row_by_row(spark, samples):
    orders = spark.read.parquet(str(samples / "orders-0.parquet")).where("offset < 200").orderBy("offset")
    blocks = lhs.encode_headers(orders, "kafka", into="block", keep=["offset"])
    read = lhs.decode_headers(blocks, "kafka", column="block", keep=["offset"]).orderBy("offset")
    # Headers that are null are written as none at all.
    there = orders.selectExpr("offset", "coalesce(headers, array()) as headers").orderBy("offset")
    assert_headers_equal(read.select("headers"), there.select("headers"))
    column = lha.decode(blocks.orderBy("offset").select("block").toArrow()["block"], "kafka")
    assert_headers_equal(read.select("headers"), column)
    other = there.selectExpr("if(offset = 7, slice(headers, 2, 99), headers) as headers")
    with pytest.raises(AssertionError) as caught:
        assert_headers_equal(read.select("headers"), other)
    lines = str(caught.value).splitlines()
    first = read.where("offset = 7").first().headers[0]
    assert lines[:2] == ["headers differ in 1 of 200 rows (left -, right +)", "row 7:"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [f"- 0  {first.key!r} = {bytes(first.value).decode()!r}"]


def test_dataframe_with_other_columns_is_rejected(spark):
    frame = spark.range(1).selectExpr("id", "array() as headers")
    with pytest.raises(TypeError, match="a frame with one column of headers is needed, not id, headers: select it"):
        assert_headers_equal(frame, frame)
