"""``lhs.doctor`` finds what is wrong where workers run another Python, of which every one here is real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from letterhead import spark as lhs
from letterhead.spark.doctor import NEED_NOTHING, _judge_batches
from tests.helpers import environments


@pytest.fixture
def doctor_with(spark, monkeypatch):
    """Run the doctor with workers that use another Python."""

    def run(python: Path | str):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        return lhs.doctor(spark)

    return run


def wrong(report) -> list[tuple[str, str]]:
    assert report.ok is all(finding.level != "wrong" for finding in report.findings)
    return [
        (finding.where.partition(" (")[0], finding.problem) for finding in report.findings if finding.level == "wrong"
    ]


def test_working_session_has_no_findings(spark, request, monkeypatch):
    if request.config.getoption("--engine", "spark") == "sail":
        monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")  # which Sail does not start
    report = lhs.doctor(spark)
    assert report.ok
    assert report.findings == []
    assert list(report.places) == ["driver", "1 executor"]
    driver, executor = report.places.values()
    assert executor["decode"] == "right"
    for name in ("version", "location"):
        assert executor["letterhead"][name] == driver["letterhead"][name]
    assert report.settings["spark.sql.execution.arrow.maxRecordsPerBatch"] == "1000"
    lines = str(report).splitlines()
    assert lines[0].split() == ["driver", "1", "executor"]
    assert lines[-1] == "nothing is wrong"
    read = json.loads(report.to_json())
    assert read["ok"] is True
    assert read["places"] == {"driver": driver, "1 executor": executor}
    assert read["settings"] == report.settings


@pytest.mark.spark_only  # Sail starts no other Python
def test_executor_without_letterhead_is_error(doctor_with, tmp_path):
    python = environments.environment(tmp_path / "bare", lambda name: True)
    report = doctor_with(python)
    assert wrong(report) == [("1 executor", f"letterhead is not installed ({python} has none)")]
    (finding,) = (error for error in report.findings if error.level == "wrong")
    assert "spark.archives=letterhead.zip#letterhead" in finding.remedy
    assert [error.problem for error in report.findings if error.level == "note"] == [NEED_NOTHING]


@pytest.mark.spark_only  # Sail starts no other Python
def test_executor_with_another_version_is_error(doctor_with, tmp_path):
    directory = tmp_path / "other"
    python = environments.environment(directory, lambda name: True)
    environments.install(environments.packed(tmp_path, version="9.9.9"), directory)
    report = doctor_with(python)
    ours = report.places["driver"]["letterhead"]["version"]
    theirs = report.places["1 executor"]["letterhead"]
    assert theirs["version"] == "9.9.9"
    assert theirs["location"].startswith(str(directory))
    assert wrong(report) == [
        ("1 executor", f"letterhead 9.9.9 from {theirs['location']}, and the driver has {ours}"),
    ]  # fmt: skip


@pytest.mark.spark_only  # Sail starts no other Python
def test_executor_without_pyarrow_is_error(doctor_with, tmp_path):
    directory = tmp_path / "poor"
    python = environments.environment(directory, lambda name: not name.startswith("pyarrow"))
    environments.install(environments.packed(tmp_path), directory)
    report = doctor_with(python)
    assert wrong(report) == [("1 executor", "pyarrow is not installed, and Spark needs it")]
    assert report.places["1 executor"]["decode"] == "right"


@pytest.mark.spark_only  # Sail starts no other Python
def test_missing_python_is_error(doctor_with, tmp_path):
    report = doctor_with(tmp_path / "nowhere" / "python")
    ((where, problem),) = wrong(report)
    assert where == "executors"
    assert problem.startswith(f'the workers\' Python does not start: Cannot run program "{tmp_path}/nowhere/python"')
    assert list(report.places) == ["driver"]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (0, "no limit of rows, so that a batch can be as large as a partition"),
        (999, "batches of so few rows take longer"),
        (1_000, None),
        (64_000, None),
        (64_001, "batches of so many rows take more memory, and longer"),
    ],
)
def test_bad_batch_size_is_note_with_remedy(rows, problem):
    notes = [(finding.level, finding.problem.partition(": ")[2], finding.remedy) for finding in _judge_batches(rows)]
    mend = (
        "spark.conf.set('spark.sql.execution.arrow.maxRecordsPerBatch', 10000), its default; "
        "4,000 to 64,000 rows take about as long"
    )
    assert notes == ([] if problem is None else [("note", problem, mend)])


@pytest.mark.spark_only  # Sail ignores the setting
def test_notes_do_not_fail_report(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    try:
        spark.conf.set(name, "0")
        report = lhs.doctor(spark, executors=2)
    finally:
        spark.conf.set(name, before)
    assert report.ok
    reported = {finding.where: finding.problem for finding in report.findings}
    assert reported["session"] == f"{name}=0: no limit of rows, so that a batch can be as large as a partition"
    assert reported["executors"] == "1 of 2 executors answered; the others were busy, or are gone"
