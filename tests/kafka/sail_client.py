"""A client of a Sail server: `python sail_client.py ADDRESS BROKER TOPIC SAMPLES`; prints two answers as JSON.

It has a process of its own, as a process with a classic session of Spark cannot connect to a server.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from letterhead import spark as lhs

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64"}
"""Headers of the sample of orders."""


def main(address: str, broker: str, topic: str, samples: str) -> None:
    spark = SparkSession.builder.remote(address).getOrCreate()
    lhs.register(spark)
    options = {"kafka.bootstrap.servers": broker, "subscribe": topic}
    options |= lhs.options(columns=["partition", "offset"], headers=COLUMNS)
    read = spark.read.format("letterhead-kafka").options(**options).load()
    orders = spark.read.parquet(f"{samples}/orders-0.parquet").repartition(4)
    selected = orders.transform(lhs.select_headers("headers", "kafka", COLUMNS, keep=["offset"]))
    answers = {
        "topic": read.orderBy("partition", "offset").toArrow().to_pylist(),
        "tenants": selected.groupBy("tenant").count().orderBy("tenant").toArrow().to_pylist(),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
