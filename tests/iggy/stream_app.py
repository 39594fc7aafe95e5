"""A stream from a topic to Parquet in a process that can be killed: `python stream_app.py ADDRESS TOPIC DIRECTORY ROWS`."""

from __future__ import annotations

import faulthandler
import sys

from letterhead import spark as lhs
from tests.helpers.spark_session import local_session

LIMIT = 540


def main(address: str, topic: str, directory: str, rows: str) -> None:
    spark = local_session("a stream to kill")
    lhs.register(spark)
    source = (
        spark.readStream.format("letterhead-iggy")
        .option("address", address)
        .option("stream", "tests")
        .option("topic", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows)
        .options(**lhs.options(columns=["partition", "offset"], headers={"retry": "int32"}))
        .load()
    )
    query = (
        source.writeStream.format("parquet")
        .option("path", f"{directory}/table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    main(*sys.argv[1:5])
