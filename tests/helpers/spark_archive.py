"""Write the archive of classes that Spark's JVMs of the tests start from: `python -m tests.helpers.spark_archive FILE`.

To load and verify its classes takes a JVM of Spark half of the processor time until its first results. With an archive it
maps them. A JVM with other jars ignores the archive.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.helpers.spark_session import local_session

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Most code of Spark runs a few times in a test. Not to compile it twice saves a third of the processor time."""

ARCHIVE = Path(__file__).resolve().parents[2] / "target" / "spark.jsa"


def java_options() -> str:
    """Return the options of Java for the JVMs of Spark."""
    # Without the file, Java would not even use the archive of its own classes. It prints nothing if it ignores an archive.
    return f"{QUICK_JVM} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else QUICK_JVM


def write(archive: Path) -> None:
    """Run queries such as those of the tests, and let Java archive the classes that they load."""
    import pyarrow as pa

    unfinished = archive.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={unfinished} -Xlog:cds*=off"
    spark = local_session("archive")
    java = spark.sparkContext._gateway.proc
    with tempfile.TemporaryDirectory() as directory:
        rows = spark.createDataFrame([(1, "a", b"x")], "number int, text string, bytes binary")
        rows.repartition(2).write.parquet(f"{directory}/rows")
        read = spark.read.parquet(f"{directory}/rows")
        read.groupBy("text").count().orderBy("text").collect()
        joined = read.join(read.select("number"), "number")
        joined.selectExpr("transform(array(text), t -> upper(t))", "named_struct('a', bytes)").toArrow()
        read.mapInArrow(lambda batches: batches, read.schema).collect()
        spark.createDataFrame(pa.table({"number": [1]})).collect()
        stream = spark.readStream.schema(read.schema).parquet(f"{directory}/rows").writeStream.format("parquet")
        stream = stream.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True)
        stream.start(f"{directory}/out").awaitTermination()
    spark.stop()
    java.stdin.close()  # Java ends, and writes the archive
    if java.wait() != 0 or not unfinished.exists():
        raise RuntimeError("Java wrote no archive")
    unfinished.rename(archive)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
