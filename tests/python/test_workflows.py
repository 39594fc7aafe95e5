"""What is run for a change: the same stages on one machine and in the workflow."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_workflow_runs_the_stages_that_one_machine_runs():
    stages = re.findall(r"^stage make (\S+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    steps = re.findall(r"^ +- run: make (\S+)$", (ROOT / ".github/workflows/ci.yml").read_text(), re.MULTILINE)
    assert stages == ["setup", "lint", "docs", "test", "test-full"]
    assert [*dict.fromkeys(steps)] == stages


def test_every_job_that_makes_something_sets_up_first():
    _, *jobs = re.split(
        r"^  (?=\w+:$)", (ROOT / ".github/workflows/ci.yml").read_text().partition("\njobs:\n")[2], flags=re.M
    )
    assert len(jobs) == 3
    for job in jobs:
        assert re.findall(r"- run: make (\S+)", job)[0] == "setup", job
