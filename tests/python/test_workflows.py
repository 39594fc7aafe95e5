"""What is run for a change: the same stages on one machine and in the workflow, and nothing that can change by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


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


def test_instructions_are_counted_with_the_compiler_of_those_on_record():
    compiler = json.loads((ROOT / "benches/record/instructions.json").read_text())["compiler"]
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["full"]["steps"]
    chosen = [step["run"] for step in steps if step.get("run", "").startswith("rustup ")]
    version = compiler.split()[1]
    assert chosen == [f"rustup toolchain install {version} --profile minimal", f"rustup default {version}"]


def test_there_are_the_workflows_that_the_rules_below_are_for():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "hostile.yml", "supply.yml", "wheels.yml"]


@every_workflow
def test_an_action_is_named_by_its_commit_and_the_same_everywhere(path):
    # A tag can be moved to other code; a commit cannot.
    used = re.findall(r"uses: *(.*)", path.read_text())
    pinned = re.compile(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert used
    assert [line for line in used if not pinned.fullmatch(line)] == []
    others = {line for other in WORKFLOWS for line in re.findall(r"uses: *(.*)", other.read_text())}
    assert len({line.split("@")[0] for line in others}) == len(others), "one action in two versions"


@every_workflow
def test_a_job_may_read_the_sources_and_nothing_else(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert not [name for name, job in workflow["jobs"].items() if "permissions" in job]
    assert "secrets." not in path.read_text()
    assert "pull_request_target" not in path.read_text()


@every_workflow
def test_a_job_ends_by_itself_and_keeps_no_token(path):
    for name, job in yaml.safe_load(path.read_text())["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        first = job["steps"][0]
        assert first["uses"].startswith("actions/checkout@"), name
        assert first["with"] == {"persist-credentials": False}, name


@every_workflow
def test_nothing_that_others_wrote_is_put_into_a_command(path):
    # A title or a branch name is text of a stranger. What stands in a command is from the matrix of the file itself.
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        for step in job["steps"]:
            assert set(re.findall(r"\$\{\{ *([a-z]+)\.", step.get("run", ""))) <= {"matrix"}


@every_workflow
def test_every_target_that_a_workflow_makes_is_there(path):
    made = re.findall(r"run: make ([a-z0-9-]+)", path.read_text())
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made
    assert [target for target in made if target not in targets] == []
