"""Change the core in small ways, one at a time, and see whether its tests notice: the Rust half of ``tools/mutate``.

    python tests/mutation/core.py [--sample N] [--seed N] [--since REVISION] [--record] [--at-least PERCENT] [FILE ...]

cargo-mutants lists the changes, and a sample of them is compiled into one program (see ``switched.py``), whose tests run once for
each. ``--python`` also builds the module of Python in this way, and runs its tests against the mutants that survive.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from record import check_rate, record, table
from switched import Mutant, refused, write

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "target" / "mutants" / "rust"
TREE = OUTPUT / "tree"
OPTIONS = ["--no-default-features"]
SUITES = ["tests/package", "tests/where", "tests/scan", "tests/iggy", "tests/kafka", "tests/kip82", "tests/offsets"]
"""The tests of Python that run most of the core."""
MEMORY = 8 << 30
"""Bytes of address space that a process of tests may take with a mutant."""
NOT_OF_MUTANTS = ["--skip", "layers", "--skip", "outside"]
"""Tests that read the sources, which the mutants have changed, or compile programs."""


def listed(files: Sequence[str], since: str | None) -> list[Mutant]:
    """Return all mutants of some files."""
    command = ["cargo", "mutants", "--list", "--json", *OPTIONS]
    for file in files:
        command += ["--file", file]
    if since:
        difference = OUTPUT / "changes.diff"
        difference.write_text(
            subprocess.run(["git", "diff", since, "--", "src"], check=True, capture_output=True, text=True).stdout
        )
        command += ["--in-diff", str(difference)]
    mutants = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    # The binding is compiled only with the feature `python`.
    return [mutant for mutant in mutants if not mutant["file"].startswith("src/python/")]


def make_tree() -> None:
    """Make a copy of the project for the changed sources; what does not change is linked."""
    TREE.mkdir(parents=True, exist_ok=True)
    for path in ROOT.iterdir():
        link = TREE / path.name
        if path.name not in ("src", "target") and not path.name.startswith(".") and not link.exists():
            link.symlink_to(path)


def compile_all(mutants: Mapping[int, Mutant]) -> dict[int, Mutant]:
    """Write the mutants into the tree, and return those that the compiler accepts."""
    accepted = dict(mutants)
    for number in write(ROOT, TREE, accepted):
        del accepted[number]
    while blamed := refused(TREE, ["cargo", "check", "--quiet", *OPTIONS], accepted.keys()):
        for number in blamed:
            del accepted[number]
        write(ROOT, TREE, accepted)
    return accepted


def executables(command: Sequence[str]) -> list[str]:
    """Build, and return the programs or libraries that came out of it."""
    done = subprocess.run([*command, "--message-format=json"], cwd=TREE, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    artifacts = [message for message in messages if message["reason"] == "compiler-artifact"]
    own = [artifact for artifact in artifacts if artifact["manifest_path"] == str(TREE / "Cargo.toml")]
    programs = [artifact["executable"] for artifact in own if artifact["executable"] and artifact["profile"]["test"]]
    libraries = [file for artifact in own for file in artifact["filenames"] if file.endswith((".so", ".dylib"))]
    return programs or libraries


def tests_notice(programs: Sequence[str], number: int, seconds: float) -> bool:
    """Run the tests of the core with one mutant until the first of them fails."""
    return any(fails([program, "--test-threads=2", *NOT_OF_MUTANTS], number, seconds) for program in programs)


def limit_memory() -> None:
    """Make a mutant that allocates without bound fail before it takes all memory of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def fails(command: Sequence[str], number: int, seconds: float) -> bool:
    """Return whether a test of a program fails, or the program takes too long."""
    environment = os.environ | {"MUTANT": str(number)}
    with subprocess.Popen(
        command, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=limit_memory,
    ) as tests:  # fmt: skip
        limit = threading.Timer(seconds, tests.kill)
        limit.start()
        for line in tests.stdout or ():
            if line.endswith("FAILED\n"):
                tests.kill()
        limit.cancel()
    return tests.returncode != 0


def python_notices(package: Path, number: int) -> bool:
    """Run the tests of Python with one mutant until one of them fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout", "120"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile"]
    marks = "not full and not jvm and not broker and not iggy_server"
    environment = os.environ | {"MUTANT": str(number), "PYTHONPATH": str(package), "LETTERHEAD_EXAMPLES": "10"}
    done = subprocess.run(
        [*command, "-m", marks, *SUITES], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False,
        preexec_fn=limit_memory,
    )  # fmt: skip
    return done.returncode != 0


def build_module() -> Path:
    """Build the module of Python with all mutants, and return a directory with the package."""
    [library] = executables(["cargo", "build", "--quiet", "--lib", "--features", "python"])
    package = OUTPUT / "python"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(library, package / "letterhead" / "_native.abi3.so")
    return package


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="tools/mutate rust", description="Change the core, and run its tests.")
    parser.add_argument("files", nargs="*", default=["src/**"], help="files of src (all)")
    parser.add_argument("--sample", type=int, default=50, help="how many mutants (50)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--since", metavar="REVISION", help="only lines that have changed since then")
    parser.add_argument("--python", action="store_true", help="try survivors against the tests of Python too")
    parser.add_argument("--record", action="store_true", help="write tests/MUTATION.md")
    parser.add_argument("--at-least", metavar="PERCENT", type=float, default=0, help="fail if fewer mutants are killed")
    chosen = parser.parse_args()
    make_tree()
    os.environ["CARGO_TARGET_DIR"] = str(OUTPUT / "target")
    population = sorted(listed(chosen.files, chosen.since), key=lambda mutant: mutant["name"])
    drawn = random.Random(chosen.seed).sample(population, min(chosen.sample, len(population)))
    if not drawn:
        print("no mutants")
        return
    mutants = compile_all(dict(enumerate(drawn, 1)))
    print(f"{len(mutants)} of {len(population):,} mutants", flush=True)
    left_out = [mutant["name"] for mutant in drawn if mutant not in mutants.values()]
    print("".join(f"not compiled: {name}\n" for name in left_out), end="", flush=True)

    programs = executables(["cargo", "test", "--quiet", "--no-run", "--lib", "--tests", *OPTIONS])
    if not programs:
        sys.exit("no program of tests was built")
    begun = time.monotonic()
    if tests_notice(programs, 0, 3600):
        sys.exit("the tests fail without a mutant")
    seconds = 60 + 10 * (time.monotonic() - begun)
    print(f"the tests take {time.monotonic() - begun:.0f} seconds", flush=True)
    survivors, counts = [], defaultdict[str, Counter[str]](Counter)
    for place, (number, mutant) in enumerate(mutants.items(), 1):
        noticed = tests_notice(programs, number, seconds)
        counts[package(mutant)]["killed" if noticed else "survived"] += 1
        if not noticed:
            survivors.append(number)
        print(
            f"{place} of {len(mutants)}  {'killed' if noticed else 'survived':8}  {number} {mutant['name']}", flush=True
        )
    if chosen.python and survivors:
        directory = build_module()
        if python_notices(directory, 0):
            sys.exit("the tests of Python fail without a mutant")
        for number in survivors:
            if noticed := python_notices(directory, number):
                counts[package(mutants[number])].update({"killed": 1, "survived": -1})
            print(f"{'killed' if noticed else 'survived':8}  {number} {mutants[number]['name']}", flush=True)
    print(table(counts))
    if chosen.record:
        record("rust", f"tools/mutate rust --sample {chosen.sample} --seed {chosen.seed}", counts)
    check_rate(counts, chosen.at_least)


def package(mutant: Mutant) -> str:
    """Return the directory of the core that a mutant is in."""
    parts = mutant["file"].split("/")
    return parts[1] if len(parts) > 2 else "letterhead"


if __name__ == "__main__":
    main()
