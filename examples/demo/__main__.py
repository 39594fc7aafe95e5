"""A real topic and a real Kafka Streams store through Spark, with every result checked.

Needs pyspark and Java 17 or later: pip install '.[cli,pyspark]' in a clone; for --engine sail '.[cli,sail]', and no Java.
Run: python examples/demo (or make demo, which installs everything first)
"""

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "tests" / "samples"


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Run letterhead on a real topic and a real state store.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="where Parquet is written")
    parser.add_argument("--bad-share", type=float, default=0.01, help="share of the store's values to damage, 0 to 1")
    parser.add_argument("--engine", choices=["spark", "sail"], default="spark", help="what runs the steps 1 to 5")
    options = parser.parse_args()
    if not 0 <= options.bad_share <= 1:
        parser.error(f"--bad-share is {options.bad_share}, not between 0 and 1")
    on_sail = options.engine == "sail"
    needed = ["pyspark", "pyarrow", "pandas", "rich", *(["pysail"] if on_sail else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        extras = "cli,sail" if on_sail else "cli,pyspark"
        parser.error(f"{' and '.join(missing)} not installed: pip install '.[{extras}]' in a clone")
    if not on_sail and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        parser.error("java is not installed: install Java 17 or later, or set JAVA_HOME")

    from formats import every_format
    from report import Report
    from steps import Steps

    options.out.mkdir(parents=True, exist_ok=True)
    report = Report(options.out)
    with sail_session() if on_sail else spark_session(options.out / "spark.log") as spark:
        steps = Steps(spark, SAMPLES, report)
        steps.typed_topic()
        steps.typed_store(options.bad_share)
        steps.there_and_back()
        steps.tenants()
        steps.exact_copy()
    every_format(SAMPLES / "orders-0.parquet", report)
    return report.end()


@contextmanager
def spark_session(log: Path) -> Iterator[object]:
    """Start Spark with two local workers; what its JVM prints goes to a file."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("letterhead demo").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    # The JVM keeps the standard streams that this process has when it starts.
    terminal = os.dup(1), os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        spark = builder.getOrCreate()
        for number, copy in zip((1, 2), terminal, strict=True):
            os.dup2(copy, number)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        # One empty job starts the Python workers, so that their start is not counted as work on headers.
        spark.range(2, numPartitions=2).mapInArrow(lambda batches: batches, "id long").collect()
        yield spark
    finally:
        spark.stop()


@contextmanager
def sail_session() -> Iterator[object]:
    """Start Sail in this process."""
    os.environ.setdefault("RUST_LOG", "error")
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start()
    host, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        yield spark
    finally:
        spark.stop()
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
