"""Change the package in small ways, one at a time, and see whether a test notices: the Python half of ``tools/mutate``.

    python tests/mutation/package.py [OPTION ...] [PATH ...]

A mutant is one change of one place, such as ``<`` to ``<=``; cosmic-ray makes it. Places are drawn at random from the files, so
that each counts alike, however many changes it allows. The tests that ran the line before the change run against it, those that
run least besides first. A mutant is killed by a test that fails, and survives if none does. A test that runs out of time kills it
only if the test ends in time without the change; otherwise the mutant has timed out, and says nothing.

The tests that run a line, in their own process or in one that they start, are found by measuring coverage once, which takes ten
minutes; ``target/mutants`` keeps the result until the sources or the tests change.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import queue
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import coverage.numbits
import parso.tree
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from record import check_rate, record, table

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "letterhead"
PLACE = ROOT / "target" / "mutants"
COVERAGE = PLACE / "coverage.sqlite"
SUITES = ["tests", "--ignore=tests/spark", "--ignore=tests/load"]
MOST_TESTS = 400
"""Tests that run against one mutant."""
TEST_SECONDS, MUTANT_SECONDS, SERVER_SECONDS = 120, 600, 1800
"""Seconds allowed for one test, for all tests of a mutant, and for its tests that need a server."""
SERVERS = {
    "cli": ["tests/kafka/test_read_command.py", "tests/iggy/test_iggy_read_command.py"],
    "iggy": ["tests/iggy"],
    "kafka": ["tests/kafka"],
    "offsets": ["tests/kafka"],
    "sources": ["tests/kafka/test_read_command.py", "tests/iggy/test_iggy_read_command.py"],
    "spark": ["tests/spark"],
    "state": ["tests/state"],
}
"""By package, the tests that need Spark, Java, a broker or a server of Iggy."""
COVERAGE_SETTINGS = f"""\
[run]
source = {PACKAGE}
patch = subprocess
# A program that a test starts counts for the test.
context = ${{PYTEST_CURRENT_TEST-}}
"""

ARITHMETIC = ["Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_Add", "LShift_RShift", "RShift_LShift",
              "BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitAnd", "Div_Mul"]  # fmt: skip
OPERATORS = [
    *(f"core/ReplaceBinaryOperator_{names}" for names in ARITHMETIC),
    *(name for name in plugins.operator_names() if "ReplaceComparisonOperator_" in name),
    *(f"core/{name}" for name in (
        "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "AddNot", "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
        "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop",
    )),
]  # fmt: skip


class RemoveCall(Operator):
    """Replace a statement that only calls something by ``pass``: a check, a flush, a registration that is left out."""

    def mutation_positions(self, node):
        if (
            node.type in ("atom_expr", "power")
            and node.parent.type == "simple_stmt"
            and getattr(node.children[-1], "children", [None])[0] == "("
        ):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        statement = parso.parse("pass").children[0]
        statement.prefix = node.get_first_leaf().prefix
        return statement

    @classmethod
    def examples(cls):
        return ()


@dataclass(frozen=True)
class Mutant:
    """One change of a file."""

    path: Path
    line: int
    before: str
    after: str

    @property
    def diff(self) -> str:
        """Return the lines that differ."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---")))

    @property
    def package(self) -> str:
        """Return the subject that the file belongs to."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else "letterhead"


def operator(name: str) -> Operator:
    """Return the operator of a name."""
    return RemoveCall() if name == "RemoveCall" else plugins.get_operator(name)()


def places(source: str, lines: set[int] | None) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Return, by the place where it begins, each change as an operator and its number in the file."""
    left_out = list(not_code(ast.parse(source)))
    tree = get_ast(source)
    result: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for name in [*OPERATORS, "RemoveCall"]:
        by_name = operator(name)
        positions = (start for node in ast_nodes(tree) for start, _ in by_name.mutation_positions(node))
        for number, start in enumerate(positions):
            if not any(first <= start < last for first, last in left_out) and (lines is None or start[0] in lines):
                result[start].append((name, number))
    return result


def not_code(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations, overloads and imports for type checkers begin and end: nothing runs them."""
    for node in ast.walk(tree):
        nodes: list[ast.AST | None] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            nodes.append(node)
        if isinstance(node, ast.FunctionDef) and any(
            "overload" in ast.dump(decorator) for decorator in node.decorator_list
        ):
            nodes.append(node)
        for part in nodes:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def changed_lines(revision: str) -> dict[Path, set[int]]:
    """Return the lines of the package that have changed since a revision."""
    diff = subprocess.run(
        ["git", "diff", "-U0", revision, "--", str(PACKAGE)], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    result: dict[Path, set[int]] = defaultdict(set)
    path = PACKAGE
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            path = ROOT / line[6:]
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk[1])
            result[path].update(range(first, first + int(hunk[2] or 1)))
    return result


def sample(files: Iterable[Path], lines: dict[Path, set[int]] | None, count: int, seed: int) -> list[Mutant]:
    """Draw some places at random, and one change for each."""
    chance = random.Random(seed)
    sources = {path: path.read_text() for path in files if lines is None or path in lines}
    changes = {path: places(source, lines and lines[path]) for path, source in sources.items()}
    population = sorted((path, start) for path, starts in changes.items() for start in starts)
    print(f"{len(population):,} places in {len(sources)} files", flush=True)
    mutants = []
    for path, start in chance.sample(population, len(population)):
        if len(mutants) == count:
            break
        name, number = chance.choice(changes[path][start])
        after = mutate_code(sources[path], operator(name), number)
        if after is not None and after != sources[path] and compiles(after):
            mutants.append(Mutant(path, start[0], sources[path], after))
    return mutants


def compiles(source: str) -> bool:
    """Return whether Python accepts a source."""
    try:
        compile(source, "", "exec")
    except SyntaxError:
        return False
    return True


def measure_coverage(suites: list[str], environment: dict[str, str], processes: int) -> None:
    """Run the tests once, and note which of them run each line."""
    newest = max(path.stat().st_mtime for where in ("python", "tests") for path in (ROOT / where).rglob("*.py"))
    if COVERAGE.exists() and COVERAGE.stat().st_mtime > newest:
        return
    print("measuring which tests run each line", flush=True)
    PLACE.mkdir(parents=True, exist_ok=True)
    settings, data = PLACE / "coveragerc", PLACE / "measured"
    settings.write_text(COVERAGE_SETTINGS)
    command = [
        *(sys.executable, "-m", "pytest", *suites, "-q", "-p", "no:cacheprovider"),
        *("-m", "not full and not jvm and not broker and not iggy_server"),
        *("-n", str(processes), "--dist", "loadfile"),
        *(f"--cov={PACKAGE}", f"--cov-config={settings}", "--cov-context=test", "--cov-report="),
    ]
    subprocess.run(command, check=True, cwd=ROOT, env=environment | {"COVERAGE_FILE": str(data)})
    data.rename(COVERAGE)


class Coverage:
    """Which tests ran a line."""

    def __init__(self) -> None:
        database = sqlite3.connect(COVERAGE)
        names = dict(database.execute("select id, context from context"))
        files = {row: Path(path) for row, path in database.execute("select id, path from file")}
        self._tests: dict[tuple[Path, int], set[str]] = defaultdict(set)
        self._size: Counter[str] = Counter()
        for file, context, bits in database.execute("select file_id, context_id, numbits from line_bits"):
            test = test_of(names[context])
            lines = coverage.numbits.numbits_to_nums(bits)
            self._size[test] += len(lines)
            for line in lines:
                self._tests[files[file], line].add(test)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that ran the statement, those that run least besides first."""
        tests = self._at(mutant.path, statement_lines(mutant)) or self._at(mutant.path, range(1, 10_000))
        return sorted(tests, key=lambda test: (self._size[test], test))[:MOST_TESTS]

    def _at(self, path: Path, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self._tests.get((path, line), ()) if test}


def test_of(context: str) -> str:
    """Return the test of a context, which names its phase: ``test|run`` in its process, ``test (call)`` in one that it started."""
    return context.rpartition("|")[0] or context.rpartition(" (")[0]


def statement_lines(mutant: Mutant) -> range:
    """Return the lines of the innermost statement; of a function whose signature changed, those of its body."""
    statements = [node for node in ast.walk(ast.parse(mutant.before)) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno <= mutant.line <= (node.end_lineno or node.lineno)]
    if not around:
        return range(mutant.line, mutant.line + 1)
    innermost = max(around, key=lambda node: (node.lineno, node.col_offset))
    if isinstance(innermost, ast.FunctionDef):
        return range(innermost.body[0].lineno, (innermost.end_lineno or innermost.lineno) + 1)
    return range(innermost.lineno, mutant.line + 1)


def outcome(mutant: Mutant, tests: list[str], tree: Path, environment: dict[str, str]) -> str:
    """Run tests against a mutant in a copy of the package."""
    if not tests:
        return "not run"
    try:
        with applied(mutant, tree):
            passed, late = run_tests(tests, tree, environment)
    except subprocess.TimeoutExpired:
        return "timed out"
    if passed:
        return "survived"
    return "killed" if not late or run_tests(late, tree, environment)[0] else "timed out"


@contextmanager
def applied(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Change a copy of the package for the body."""
    place = tree / mutant.path.relative_to(PACKAGE.parent)
    place.write_text(mutant.after)
    try:
        yield
    finally:
        place.write_text(mutant.before)


def pytest_on(
    tree: Path, options: Iterable[str], seconds: float, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run pytest on a copy of the package until a test fails."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *options],
        cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
        env=environment | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def run_tests(tests: list[str], tree: Path, environment: dict[str, str]) -> tuple[bool, list[str]]:
    """Run tests on a copy of the package; return whether all passed, and those that took too long."""
    listed = tree / "tests.txt"
    options = ["--timeout", str(TEST_SECONDS), "--timeout-method", "signal", f"@{listed}"]
    while tests:
        listed.write_text("\n".join(tests))
        done = pytest_on(tree, options, MUTANT_SECONDS, environment)
        missing = set(re.findall(r"^ERROR: not found: (.*)$", done.stderr + done.stdout, re.MULTILINE))
        if not missing:
            return done.returncode == 0, [test for test in tests if f"FAILED {test} - Failed: Timeout" in done.stdout]
        # A test whose parameters the change has renamed: pytest runs none of the others.
        present = [test for test in tests if not any(name.endswith(test) for name in missing)]
        if len(present) == len(tests):
            raise ValueError(f"pytest finds no test for {missing}")
        tests = present
    return True, []


def run(mutants: list[Mutant], minutes: float, processes: int, environment: dict[str, str]) -> dict[Mutant, str]:
    """Run the tests against each mutant until the time is over."""
    covered, ends = Coverage(), time.monotonic() + 60 * minutes
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    outcomes: dict[Mutant, str] = {}

    def work(tree: Path) -> None:
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(PACKAGE, tree / "letterhead", ignore=shutil.ignore_patterns("__pycache__"))
        while time.monotonic() < ends:
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            outcomes[mutant] = outcome(mutant, covered.tests_of(mutant), tree, environment)
            place = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            print(f"{len(outcomes)} of {len(mutants)}  {outcomes[mutant]:9}  {place}", flush=True)
            if outcomes[mutant] != "killed":
                print(mutant.diff, flush=True)

    workers = [threading.Thread(target=work, args=[PLACE / f"tree-{number}"]) for number in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return outcomes


def run_with_servers(outcomes: dict[Mutant, str], processes: int, environment: dict[str, str]) -> None:
    """Run tests that need a server against each mutant that the others did not notice."""
    tree = PLACE / "tree-0"
    for mutant, result in outcomes.items():
        if result not in ("survived", "not run") or mutant.package not in SERVERS:
            continue
        mark = "not full" if mutant.package == "spark" else "(jvm or broker or iggy_server) and not full"
        options = ["-m", mark, "-n", str(processes), "--dist", "loadfile", *SERVERS[mutant.package]]
        try:
            with applied(mutant, tree):
                done = pytest_on(tree, options, SERVER_SECONDS, environment)
            # With code 2 the mutant broke the collection of the tests.
            outcomes[mutant] = {0: "survived", 1: "killed", 2: "killed"}[done.returncode]
        except subprocess.TimeoutExpired:
            outcomes[mutant] = "timed out"
        print(f"with servers: {outcomes[mutant]:9}  {mutant.path.relative_to(ROOT)}:{mutant.line}", flush=True)


def by_package(outcomes: dict[Mutant, str]) -> dict[str, Counter[str]]:
    """Count the outcomes of each package."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, result in outcomes.items():
        counts[mutant.package][result] += 1
    return counts


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="tools/mutate python", description="Change the package, and run its tests.")
    parser.add_argument("paths", nargs="*", type=Path, default=[PACKAGE], help="files or directories (the package)")
    parser.add_argument("--sample", type=int, default=100, help="how many mutants (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--minutes", type=float, default=60, help="begin none after this time (60)")
    parser.add_argument("--since", metavar="REVISION", help="only lines that have changed since then")
    parser.add_argument("--tests", nargs="*", default=SUITES, help="what pytest runs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--servers", action="store_true", help="try survivors against tests that need a server")
    parser.add_argument("--record", action="store_true", help="write tests/MUTATION.md")
    parser.add_argument("--at-least", metavar="PERCENT", type=float, default=0, help="fail if fewer mutants are killed")
    chosen = parser.parse_args()
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "LETTERHEAD_EXAMPLES": "10"}
    files = sorted({file for path in chosen.paths for file in ([path] if path.is_file() else path.rglob("*.py"))})
    lines = changed_lines(chosen.since) if chosen.since else None
    mutants = sample([file.resolve() for file in files], lines, chosen.sample, chosen.seed)
    if not mutants:
        print("no mutants")
        return
    measure_coverage(chosen.tests, environment, chosen.processes)
    outcomes = run(mutants, chosen.minutes, chosen.processes, environment)
    if chosen.servers:
        run_with_servers(outcomes, chosen.processes, environment)
    counts = by_package(outcomes)
    print(f"\n{table(counts)}\n\n{len(outcomes)} of {len(mutants)} mutants were tried")
    if chosen.record:
        record("python", f"tools/mutate python --sample {chosen.sample} --seed {chosen.seed}", counts)
    check_rate(counts, chosen.at_least)


if __name__ == "__main__":
    main()
