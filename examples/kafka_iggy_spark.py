"""Copy a Kafka topic to Apache Iggy, read the copy in Spark with typed headers, and write Parquet.

The topic of Iggy exists and has at least as many partitions as that of Kafka. Nothing is lost on the way: nulls, repeated
headers and their order are kept. A column of the Parquet files has the type that is named here.

Needs Spark 4 and two servers: pip install '.[pyspark,kafka]' in a clone. Run:

    python examples/kafka_iggy_spark.py 127.0.0.1:9092 orders iggy://iggy:secret@127.0.0.1:8090 shop orders /data/orders
"""

import sys

from pyspark.sql import SparkSession

import letterhead as lh
from letterhead import spark as lhs

MAPPING = "kafka-gateway-lossless"
HEADERS = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}


def main(broker: str, topic: str, iggy: str, stream: str, copy: str, directory: str) -> None:
    """Copy, read and write."""
    with lh.read.topic(topic, bootstrap_servers=broker) as records:
        written = lh.write.iggy(records, iggy, stream=stream, topic=copy, partition="partition", mapping=MAPPING)
    print(written.rows, "records are in Iggy")

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    lhs.register(spark)
    orders = (
        spark.read.format("letterhead-iggy")
        .options(address=iggy, stream=stream, topic=copy, mapping=MAPPING)
        .options(**lhs.options(columns=["partition", "timestamp", "key", "value"], headers=HEADERS))
        .load()
    )
    orders.write.mode("overwrite").parquet(directory)
    table = spark.read.parquet(directory)
    print(table.count(), "rows of", ", ".join(table.columns))
    table.groupBy("tenant").sum("amount_cents").orderBy("tenant").show()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
