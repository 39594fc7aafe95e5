"""Reads a topic on Sail: `python sail_client.py ADDRESS TOPIC`; prints the rows as JSON.

It runs in the environment of Sail, which refuses the version of pyspark that the other tests run with.
"""

from __future__ import annotations

import json
import sys

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from letterhead import spark as lhs

HEADERS = {"tenant": "string", "retry": "int32"}


def main(address: str, topic: str) -> None:
    server = SparkConnectServer()
    server.start()
    spark = SparkSession.builder.remote("sc://{}:{}".format(*server.listening_address)).getOrCreate()
    lhs.register(spark)
    frame = (
        spark.read.format("letterhead-iggy")
        .options(address=address, stream="tests", topic=topic, minPartitions="3")
        .options(**lhs.options(columns=["partition", "offset"], headers=HEADERS))
        .load()
    )
    print(json.dumps(frame.orderBy("partition", "offset").toArrow().to_pylist()))
    spark.stop()
    server.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
