"""Spark: typed columns from stored bytes, with rows that cannot be decoded set aside.

Needs pyspark and a JDK: pip install '.[pyspark]' in a clone.
Run: PYSPARK_PYTHON=$(which python) python examples/spark_quarantine.py
"""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from letterhead import spark as lhs

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"

spark = SparkSession.builder.master("local[2]").getOrCreate()
store = spark.read.parquet(str(SAMPLES / "store-latest-0.parquet"))

# Truncate every hundredth value.
number = sf.substring(sf.col("key").cast("string"), 7, 5).cast("int")
store = store.withColumn(
    "value", sf.when(number % 100 == 0, sf.expr("substring(value, 1, 40)")).otherwise(sf.col("value"))
)

columns = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
typed = lhs.select_headers(
    store, columns, column="value", format="streams-timestamped", keep=["key", "value"], errors="column"
).cache()

good = typed.where("error is null").groupBy("tenant").agg(sf.count("*"), sf.sum("amount_cents"))
good.orderBy("tenant").show()
bad = typed.where("error is not null").select(sf.col("key").cast("string"), sf.col("error")[0]["message"])
print(bad.count(), "rows are set aside")
bad.orderBy("key").show(3, truncate=False)
spark.stop()
