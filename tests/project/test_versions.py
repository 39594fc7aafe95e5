"""Pages name the versions of docs/versions.toml, and these versions are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.versions import ROOT, VERSIONS, built

TOOL = ROOT / "tools" / "versions"


def test_pages_name_versions_from_file() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_tool_writes_versions_and_detects_stale_ones(tmp_path: Path) -> None:
    for name in ("tools", "docs"):
        (tmp_path / name).mkdir()
    tool = tmp_path / "tools" / "versions"
    tool.write_text(TOOL.read_text(encoding="utf-8"), encoding="utf-8")
    text = '[kafka]\nreference = "9.1.0"\nalso = ["9.0.2", "8.0.0"]\n'
    (tmp_path / "docs" / "versions.toml").write_text(text, encoding="utf-8")
    page = tmp_path / "docs" / "page.md"
    page.write_text("Kafka 4.4.0<!-- kafka.reference -->, and 1.0<!-- kafka.also -->. Kafka Streams 9.0.2.\n")
    for name in ("README.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("")

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, str(tool), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run("--check") == (1, "docs/page.md has other versions than docs/versions.toml: run tools/versions\n")
    assert run() == (0, "")
    written = "Kafka 9.1.0<!-- kafka.reference -->, and 9.0.2 and 8.0.0<!-- kafka.also -->. Kafka Streams 9.0.2.\n"
    assert page.read_text() == written
    assert run("--check") == (0, "")
    page.write_text("Kafka 3.0.0 and 1<!-- kafka.oldest -->")
    assert run("--check") == (1, "docs/page.md: docs/versions.toml has no kafka.oldest\n")
    page.write_text("Kafka 3.0.0")
    assert run("--check") == (1, "docs/page.md names Kafka 3.0.0, which docs/versions.toml does not have\n")


def test_spark_test_version_matches_file() -> None:
    assert version("pyspark") == VERSIONS["spark"]["reference"]


@pytest.mark.jvm
def test_java_programs_are_built_with_versions_from_file() -> None:
    for kafka in (VERSIONS["kafka"]["reference"], *VERSIONS["kafka"]["also"]):
        jars = [jar.name for jar in (built("jvm-tests", kafka) / "lib").glob("kafka-*.jar")]
        assert f"kafka-streams-{kafka}.jar" in jars
        assert [jar for jar in jars if not jar.endswith(f"-{kafka}.jar")] == []
