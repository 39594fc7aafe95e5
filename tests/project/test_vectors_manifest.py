"""The vectors as a thing of their own: the manifest is that of the files, and the runner says what holds and what not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.implementations import REFERENCE
from tests.helpers.vector_checks import MODELS, read_lines, refusal

NUMBERS = {"varint", "unsigned-varint", "varlong", "unsigned-varlong"}

BROKEN = """
import json, sys
sys.path.insert(0, {adapters!r})
import plain_python

def dropping(answer):
    headers = (answer.get("message") or {{}}).get("headers")
    if headers:
        answer["message"]["headers"] = list({{header["key"]: header for header in headers}}.values())
    return answer

for line in sys.stdin:
    print(json.dumps(dropping(plain_python.answer(json.loads(line)))), flush=True)
"""
"""An adapter that keeps headers in a map, as many a library does."""


@pytest.fixture(scope="module")
def manifest(vectors: Path) -> dict[str, Any]:
    return json.loads((vectors / "manifest.json").read_text())


def run(vectors: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(vectors / "runner.py"), *arguments], capture_output=True, text=True, timeout=540
    )


def report_of(vectors: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    ran = run(vectors, "--json", *arguments)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def adapter(vectors: Path, name: str) -> list[str]:
    return ["--", sys.executable, str(vectors / "adapters" / f"{name}.py")]


def program(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


# --- the manifest ----------------------------------------------------------------------------------------------------


def test_manifest_matches_files(vectors: Path) -> None:
    checked = subprocess.run(
        [sys.executable, str(vectors / "manifest.py"), "--check"], capture_output=True, text=True, timeout=540
    )
    assert (checked.returncode, checked.stdout) == (0, ""), "python tests/vectors/manifest.py writes it anew"


def test_changed_byte_is_detected(vectors: Path, tmp_path: Path) -> None:
    for path in [*vectors.glob("*.json*"), vectors / "runner.py", vectors / "manifest.py"]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "rocksdb").symlink_to(vectors / "rocksdb")
    changed = (tmp_path / "headers.jsonl").read_text().replace('"roundtrip":true', '"roundtrip":false', 1)
    (tmp_path / "headers.jsonl").write_text(changed)
    checked = subprocess.run(
        [sys.executable, str(tmp_path / "manifest.py"), "--check"], capture_output=True, text=True, timeout=540
    )
    assert checked.returncode == 1
    different = [line for line in checked.stdout.splitlines() if line[:1] in "+-" and line[1:3] not in ("++", "--")]
    assert [line[:12] for line in different] == ['-   "sha256"', '+   "sha256"']


def test_every_case_has_unique_identity(vectors: Path, manifest: dict[str, Any]) -> None:
    printed = subprocess.run(
        [sys.executable, str(vectors / "manifest.py"), "--cases"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    cases = [json.loads(line) for line in printed.stdout.splitlines()]
    assert len({(case["format"], case["case"]) for case in cases}) == len(cases)
    assert all(len(case["sha256"]) == 64 and case["source"] for case in cases)
    counts = Counter((case["format"], case["case"].partition("/")[0] + ".jsonl") for case in cases)
    for file in manifest["files"]:
        for format, count in file["cases"].items():
            assert counts[format, file["file"]] == count


def test_strict_rejections_match_listed_ones(vectors: Path) -> None:
    listed = json.loads((vectors / "strict.json").read_text())["malformed"]
    refused: dict[str, dict[str, list[int]]] = {format: {} for format in listed}
    for number, line in enumerate(read_lines(vectors, "malformed"), 1):
        for model, format in MODELS.items():
            if "ok" in line["targets"][model] and model != "Utils.headers":
                code = refusal(REFERENCE, bytes.fromhex(line["input"]), format, lenient=False)
                if code is not None:
                    refused[format].setdefault(code, []).append(number)
    assert refused == listed


# --- the runner ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["native", "plain_python"])
def test_every_case_matches_codes_and_positions(vectors: Path, manifest: dict[str, Any], name: str) -> None:
    status, report = report_of(vectors, "--codes", *adapter(vectors, name))
    assert report["failures"] == []
    assert (status, report["failed"]) == (0, 0)
    reported = {(row["format"], f"{row['file']}.jsonl"): row["cases"] for row in report["files"]}
    assert reported == {(f, file["file"]): n for file in manifest["files"] for f, n in file["cases"].items()}
    assert report["cases"] == manifest["cases"] == sum(reported.values())
    # The native module shows no number alone; all else is answered by both.
    unsupported = {row["format"] for row in report["files"] if row["unsupported"]}
    assert unsupported == (NUMBERS if name == "native" else set())
    numbers = sum(count for (format, _), count in reported.items() if format in NUMBERS)
    assert report["passed"] == report["cases"] - (numbers if name == "native" else 0)


def test_implementation_dropping_repeated_keys_fails_those_cases(vectors: Path) -> None:
    code = BROKEN.format(adapters=str(vectors / "adapters"))
    status, report = report_of(vectors, "--file", "headers", "--failures", "999", *program(code))
    repeats = {
        number
        for number, line in enumerate(read_lines(vectors, "headers"), 1)
        for headers in [line.get("decoded", line["headers"]) if line.get("hex") else line.get("decoded")]
        if headers and len({header["key"] for header in headers}) < len(headers)
    }
    assert len(repeats) > 10
    assert {failure["line"] for failure in report["failures"]} == repeats
    assert (status, report["failed"], report["passed"]) == (1, len(repeats), 240 - len(repeats))
    printed = run(vectors, "--file", "headers", "--failures", "1", *program(code))
    assert printed.returncode == 1
    assert f"FAILED kafka headers.jsonl:{min(repeats)} (" in printed.stdout
    assert f"and {len(repeats) - 1} more" in printed.stdout


def test_implementation_rejecting_everything_fails(vectors: Path) -> None:
    code = 'import sys\nfor line in sys.stdin: print(\'{"error": "truncated"}\', flush=True)'
    status, report = report_of(vectors, "--only", "kip82-int", *program(code))
    refusals = [line for line in read_lines(vectors, "kip82_int") if "error" in line or "errors" in line]
    assert status == 1
    assert report["passed"] == len(refusals)
    assert report["failed"] == 60 - len(refusals) > 0
    # With codes it does not even pass those that are refused for another reason.
    status, report = report_of(vectors, "--only", "kip82-int", "--codes", *program(code))
    assert status == 1
    assert report["passed"] < len(refusals)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("input(); raise SystemExit(3)", "the program ended with status 3"),
        ("import sys\nfor line in sys.stdin: print('[', flush=True)", "the answer is no JSON: ["),
        ("import sys\nfor line in sys.stdin: print('[]', flush=True)", "the answer is no object: []"),
        ("import time\ntime.sleep(60)", "no answer within 0.2 seconds"),
    ],
    ids=["ends", "no JSON", "no object", "silent"],
)
def test_implementation_without_answer_fails(vectors: Path, code: str, why: str) -> None:
    limit = "0.2" if "sleep" in code else "60"
    status, report = report_of(vectors, "--only", "iggy-batch", "--timeout", limit, *program(code))
    assert (status, report["failed"], report["passed"]) == (1, 24, 0)
    assert all(why in failure["why"] for failure in report["failures"])


def test_implementation_supporting_nothing_does_not_pass(vectors: Path) -> None:
    code = "import sys\nfor line in sys.stdin: print('{\"unsupported\": true}', flush=True)"
    status, report = report_of(vectors, "--only", "streams", *program(code))
    assert (status, report["passed"], report["unsupported"]) == (1, 0, report["cases"])


def test_adapter_that_cannot_run_is_reported(vectors: Path) -> None:
    ran = run(vectors, "--", "/nowhere/adapter")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "/nowhere/adapter: No such file or directory\n"
    assert run(vectors).returncode == 2
    assert run(vectors, "--only", "kafak", "--", "true").returncode == 2
