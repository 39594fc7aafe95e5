"""One wheel, and one file of cases: Spark, Spark Connect, polars and DuckDB give the same answers."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers import environments
from tests.spark import engines

ENGINES = ["polars", "duckdb", "spark", "connect"]


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two environments that have the wheel: one with all that is here, one that has no pyarrow."""
    directory = tmp_path_factory.mktemp("engines")
    wheel = environments.wheel(directory)
    arrow = ("polars", "duckdb", "nanoarrow")
    keep = {"spark": lambda name: True, "arrow": lambda name: name.startswith(arrow)}
    result = {name: environments.environment(directory / name, keep[name]) for name in keep}
    for name in result:
        environments.install(wheel, directory / name)
    return {"polars": result["arrow"], "duckdb": result["arrow"], "spark": result["spark"], "connect": result["spark"]}


@pytest.fixture(scope="module")
def answers_of(pythons: dict[str, Path], samples: Path) -> Any:
    """Run the cases in an engine, once."""

    @functools.cache
    def answers(engine: str) -> dict[str, Any]:
        python = pythons[engine]
        done = subprocess.run(
            [python, engines.__file__, engine, str(samples)],
            env=environments.clean(
                PYTHONPATH=str(Path(__file__).parents[2]), PYSPARK_PYTHON=str(python), SPARK_LOCAL_IP="127.0.0.1"
            ),
            capture_output=True, text=True, timeout=540, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        # The wheel, and not what the tests were started with.
        assert output["letterhead"].startswith(str(python.parents[1]))
        assert output["pyarrow"] is (engine in ("spark", "connect"))
        return output["answers"]

    return answers


def rows(samples: Path, name: str, column: str, order: str) -> list[Any]:
    table = pq.read_table(samples / name)
    return table.take(pc.sort_indices(table[order])).slice(0, engines.ROWS)[column].to_pylist()


@pytest.fixture(scope="module")
def truth(samples: Path) -> dict[str, Any]:
    """Return what the functions for one message return, of cases that need no column."""
    headers = [
        [(header["key"], header["value"]) for header in row or []]  # a list that is null has none
        for row in rows(samples, engines.ORDERS, "headers", "offset")
    ]
    store = rows(samples, engines.STORE, "value", "key")
    blocks = [lh.encode(read_message, "kafka") for read_message in headers]
    read = [lh.decode(message, "streams-timestamped") for message in store]
    return engines.plain({
        "select from headers": [lh.select(block, engines.COLUMNS) for block in blocks],
        "encode": [{"data": block, "losses": None} for block in blocks],
        "decode": [
            {
                "headers": [{"key": key, "value": value} for key, value in read_message.headers],
                "timestamp": read_message.timestamp,
                "payload": read_message.payload,
            }
            for read_message in read
        ],
        "select typed": [
            lh.select(message, {"n": lh.field("int8", repeat="first")}, format="iggy") for message in engines.TYPED
        ],
    })  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_results_match_single_messages(answers_of, truth, engine) -> None:
    answers = answers_of(engine)
    assert len(truth["decode"]) == engines.ROWS
    for case, expected in truth.items():
        assert answers[case] == expected, case


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_all_engines_give_same_results(answers_of, engine) -> None:
    first, answers = answers_of(ENGINES[0]), answers_of(engine)
    assert list(answers) == list(first)
    for case, expected in first.items():
        assert answers[case] == expected, case


def test_bad_value_is_reported_with_reason(answers_of) -> None:
    codes = [[found_error["code"] for found_error in row["error"] or []] for row in answers_of("polars")["what is bad"]]
    assert codes == [[], [], ["truncated"], ["trailing_bytes"], ["negative_count"]]
    losses = answers_of("polars")["encode with types"][0]["losses"]
    assert {loss["code"] for loss in losses} == {"unknown_type"}
