"""Workflows have no more rights than they need, run pinned actions, and call commands that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def test_the_workflow_runs_the_stages_that_one_machine_runs():
    stages = re.findall(r"^stage make (\S+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    steps = re.findall(r"^ +- run: make (\S+)$", (ROOT / ".github/workflows/ci.yml").read_text(), re.MULTILINE)
    assert set(stages) == set(steps)


def test_instructions_are_counted_with_the_compiler_of_those_on_record():
    compiler = json.loads((ROOT / "benches/record/instructions.json").read_text())["compiler"]
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["long"]["steps"]
    chosen = [step["run"] for step in steps if step.get("run", "").startswith("rustup ")]
    version = compiler.split()[1]
    assert chosen == [f"rustup toolchain install {version} --profile minimal", f"rustup default {version}"]


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
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    release = {"publish": {"contents": "read", "id-token": "write"}, "attach": {"contents": "write"}}
    assert more == (release if path.name == "release.yml" else {})
    assert "secrets." not in path.read_text()
    assert "pull_request_target" not in path.read_text()


def test_only_a_tag_is_published_after_all_that_was_built_passed():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    publish, attach = jobs.pop("publish"), jobs.pop("attach")
    assert publish["if"] == attach["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert attach["needs"] == "publish"
    assert set(publish["needs"]) == set(jobs)
    assert publish["environment"] == "pypi"


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


def commands(path):
    """Return the commands of a workflow."""
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@every_workflow
def test_every_command_of_a_workflow_exists(path):
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = [target for command in commands(path) for target in re.findall(r"\bmake ([a-z0-9-]+)", command)]
    called = [call for command in commands(path) for call in re.findall(r"\btools/([a-z0-9-]+) +([a-z0-9-]+)", command)]
    assert made or called
    assert [target for target in made if target not in targets] == []
    assert [call for call in called if call[1] not in subcommands(call[0])] == []


@every_workflow
def test_a_step_is_a_command_that_people_can_run(path):
    # What installs a compiler or a package of the system is left to the runner's own tools.
    ours = re.compile(r"([A-Z_]+=\S+ )?(make|tools/[a-z0-9-]+) .+|rustup .+|cargo install .+|sudo apt-get update .+")
    assert [command for command in commands(path) if not ours.fullmatch(command)] == []


def subcommands(script):
    """Return the subcommands of a script that its help names and its code has."""
    text = (ROOT / "tools" / script).read_text()
    labels = re.findall(r"^  ([a-z0-9-]+)\)", text, re.MULTILINE)
    return {name for name in re.findall(rf"^# +tools/{script} ([a-z0-9-]+)", text, re.MULTILINE) if name in labels}


@pytest.mark.parametrize("script", ["release", "supply", "fuzz", "sanitize"])
def test_the_help_of_a_tool_names_all_subcommands(script):
    text = (ROOT / "tools" / script).read_text()
    assert subcommands(script) == set(re.findall(r"^  ([a-z0-9-]+)\)", text, re.MULTILINE))


def test_every_system_and_python_of_a_release_has_a_classifier():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    systems = {"linux": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    matrix = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["other"]["strategy"]["matrix"]
    built = {job["name"].split()[0] for job in matrix["include"]}
    assert {line for line in project if line.startswith("Operating")} == {
        f"Operating System :: {systems[name]}" for name in built
    }
    declares = "#[pymodule(gil_used = false)]" in (ROOT / "src/python/mod.rs").read_text()
    assert declares == any(" Free Threading " in line for line in project)


def test_jobs_of_one_release_name_their_files_apart(tmp_path):
    # All go into one directory. A bill of materials is named after its wheel, or after the platform.
    names = set()
    for tag in ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64"):
        with zipfile.ZipFile(tmp_path / f"letterhead-0.1.0-cp311-abi3-{tag}.whl", "w") as archive:
            archive.writestr("letterhead-0.1.0.dist-info/sboms/letterhead.cyclonedx.json", tag)
        subprocess.run([sys.executable, ROOT / "tests/wheels/bill.py", tmp_path], check=True, timeout=60)
        names.add(tag)
    bills = {path.read_text(): path.name for path in tmp_path.glob("*.cdx.json")}
    assert bills == {tag: f"letterhead-0.1.0-cp311-abi3-{tag}.cdx.json" for tag in names}


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "tools").iterdir() if not path.suffix))
def test_a_tool_explains_itself_and_refuses_what_it_does_not_know(script):
    def call(argument):
        return subprocess.run([ROOT / "tools" / script, argument], capture_output=True, text=True, timeout=60)

    printed = call("--help")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert f"tools/{script} " in printed.stdout
    assert call("nothing-of-this-name").returncode == 2
