"""A declarative pipeline of Spark, whose definitions may run no query and register no function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import letterhead as lh
from letterhead import spark as lhs
from tests.helpers.pages import blocks
from tests.spark.connect import held_port

pytestmark = [pytest.mark.spark_only, pytest.mark.slow]


def test_pipeline_reads_and_writes_headers(tmp_path: Path, samples: Path) -> None:
    pytest.importorskip("pyspark.pipelines.cli", reason="came with Spark 4.1")
    [definitions] = blocks("docs/how-to/spark-sql.md", "python pipeline")
    headers = lhs.sql_pack({"tenant": "string", "amount": lh.field("bigint", key="cents")})
    files = tmp_path / "transformations"
    files.mkdir()
    (files / "orders.py").write_text(definitions.replace("tests/samples", str(samples)))
    # A file of SQL, in which the texts are.
    rows = "select tenant, amount_cents as amount from orders where tenant = 'acme'"
    tenant = lhs.sql("headers", "tenant", "string")
    (files / "again.sql").write_text(
        f"create materialized view again as select {headers} as headers from ({rows});\n"
        f"create materialized view tenants as select {tenant} as tenant from outgoing;\n"
    )
    (tmp_path / "spark-pipeline.yml").write_text(
        f"name: headers\nstorage: file://{tmp_path}/storage\nlibraries: [{{glob: {{include: transformations/**}}}}]\n"
    )
    command = Path(sys.executable).parent / "spark-pipelines"
    settings = ["spark.sql.catalogImplementation=in-memory", "spark.ui.enabled=false", "spark.driver.host=127.0.0.1"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    arguments = [part for setting in settings for part in ("--conf", setting)]
    with held_port():
        run = subprocess.run(
            [command, "run", "--spec", "spark-pipeline.yml", *arguments], cwd=tmp_path, env=environment, timeout=540,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    made, again, tenants = (
        ds.dataset(tmp_path / "spark-warehouse" / name, format="parquet").to_table().to_pylist()
        for name in ("outgoing", "again", "tenants")
    )
    assert len(made) == len(again) == 1390
    assert tenants == [{"tenant": "acme"}] * 1390
    assert made[0]["headers"] == [{"key": "tenant", "value": b"acme"}]
    assert [header["key"] for header in again[0]["headers"]] == ["tenant", "cents"]
