"""`letterhead read` of a topic of a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.cli.test_cli_terminal import Terminal
from tests.cli.test_cli_terminal import run as run_command
from tests.helpers.command import Result, bytes_of
from tests.helpers.terminal import answer
from tests.iggy.server import Server
from tests.iggy.test_write import table

pytestmark = pytest.mark.iggy_server

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def url(server: Server) -> str:
    """A topic with 30 messages."""
    server.create("shown", "orders/new")
    lh.write.iggy(table(30).drop_columns("key"), server.address, stream="shown", topic="orders/new")
    return f"iggy://127.0.0.1:{server.port}/shown/orders%2Fnew"


@pytest.fixture(autouse=True)
def login(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = urlsplit(server.address)
    monkeypatch.setenv("IGGY_USERNAME", unquote(parts.username or ""))
    monkeypatch.setenv("IGGY_PASSWORD", unquote(parts.password or ""))


def test_messages_are_shown_with_header_values(run: Run, url: str) -> None:
    result = run("read", url, "--limit", "2")
    assert (result.code, result.err) == (0, "")
    head, _, first, _, second, _, last = result.lines
    assert head.split() == ["partition", "offset", "timestamp", "headers", "payload"]
    assert (first.split()[1], second.split()[1]) == ("0", "1")
    assert 'tenant="acme"' in first
    assert '"payload 0"' in first
    assert last == "2 messages, and there are more"


def test_open_reads_a_topic(server: Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with lh.read.iggy(server.address, stream="shown", topic="orders/new") as reader:
        expected = reader.read_all()
    assert lh.open(url).read_all() == expected
    assert lh.open(f"{url}/0", columns=["offset"], last=1).read_all()["offset"].to_pylist() == [29]
    monkeypatch.delenv("IGGY_PASSWORD")
    with pytest.raises(ValueError, match="no login is known: set IGGY_USERNAME and IGGY_PASSWORD"):
        lh.open(url)
    assert lh.open(f"{server.address}/shown/orders%2Fnew").read_all() == expected


def test_json_has_all_fields_of_selected_messages(run: Run, server: Server, url: str) -> None:
    result = run(
        "read", url, "--json", "--where", "retry::int32 > 20 and tenant = 'acme'", "--start", "5", "--end", "24"
    )
    assert result.code == 0
    rows = [json.loads(line) for line in result.lines]
    with lh.read.iggy(server.address, stream="shown", topic="orders/new") as reader:
        expected = reader.read_all().slice(21, 3).to_pylist()
    assert [row["offset"] for row in rows] == [21, 22, 23]
    for row, other in zip(rows, expected, strict=True):
        assert datetime.fromisoformat(row["timestamp"]) == other["timestamp"]
        assert bytes_of(row["id"]) == other["id"]
        assert row["payload"].encode() == other["payload"]
        tenant, retry = row["headers"]
        assert tenant == {"key": "tenant", "value": "acme"}
        assert (retry["key"], retry["value"]["type"]) == ("retry", "int32")


def test_times_limit_messages(run: Run, url: str) -> None:
    def count(*options: str) -> int:
        return len(run("read", url, "--json", *options).lines)

    assert count("--start", "2024-01-01") == 30
    assert count("--end", "2024-01-01") == 0


def test_parquet_has_columns_of_reader(run: Run, server: Server, url: str, tmp_path: Path) -> None:
    out = tmp_path / "orders.parquet"
    assert run("read", url, "-o", out).code == 0
    with lh.read.iggy(server.address, stream="shown", topic="orders/new") as reader:
        assert pq.read_table(out) == reader.read_all()


def test_unreadable_source_ends_command(run: Run, server: Server, url: str) -> None:
    refused = {
        server.address: (2, "does not name a topic"),
        f"{server.address}/shown/nothing": (3, "stream 'shown' has no topic 'nothing'"),
        f"{server.address}/shown/orders/first": (2, "a partition is a number"),
        f"iggy://iggy:secret@127.0.0.1:{server.port}/shown/orders": (3, "is wrong"),
    }
    for address, (code, message) in refused.items():
        result = run("read", address)
        assert (result.code, message in result.err, "secret" in result.err) == (code, True, False)
    assert "--committed is for topics and log segments of Kafka" in run("read", url, "--committed").err
    assert "--batches is for topics and log segments of Kafka" in run("read", url, "--batches").err


def test_password_in_argument_works_and_warns(run: Run, server: Server) -> None:
    result = run("read", f"{server.address}/shown/orders%2Fnew/0", "-n", "1", "--json")
    assert (result.code, len(result.lines)) == (0, 1)
    assert "a password in an argument is visible to other users" in result.err


def test_missing_credentials_name_environment_variables(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IGGY_PASSWORD")
    result = run("read", url)
    assert (result.code, "set IGGY_USERNAME and IGGY_PASSWORD" in result.err) == (2, True)


def test_last_messages_and_typed_headers(run: Run, url: str) -> None:
    result = run("read", f"{url}/0", "--last", "2", "--columns", "offset", "--headers", "tenant,retry:int32", "--json")
    assert [json.loads(line) for line in result.lines] == [
        {"offset": 28, "tenant": "acme", "retry": 28},
        {"offset": 29, "tenant": "acme", "retry": 29},
    ]
    result = run("read", url, "--count-by", "tenant", "--json")
    assert json.loads(result.lines[0]) == {"tenant": "acme", "count": 30}


def test_json_reaches_a_file_while_errors_go_to_a_terminal(
    run: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("read", url, "--json").out
    screen = Terminal()
    with (tmp_path / "out").open("w") as out:
        assert run_command(monkeypatch, ["read", url, "--json"], out, screen.file) == 0
    assert "payload" not in screen.close()
    assert (tmp_path / "out").read_text() == expected


def test_header_absent_from_all_messages_warns(run: Run, url: str) -> None:
    result = run("read", url, "--json", "--where", "tenent = 'acme' or tenant = 'acme'")
    assert (result.code, len(result.lines) > 0) == (0, True)
    assert 'no record had a header "tenent"; names of fields are stream, ' in result.err
    assert run("read", url, "--json", "--where", "tenant = 'nobody'").err == ""


def test_second_read_of_topic_raises(server: Server, url: str) -> None:
    reader = lh.read.iggy(server.address, stream="shown", topic="orders/new")
    assert len(reader.read_all()) == 30
    with pytest.raises(ValueError, match="was read to its end"):
        reader.read_all()


def test_command_prompts_for_credentials_missing_everywhere(server: Server, url: str) -> None:
    parts = urlsplit(server.address)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    command = [sys.executable, "-m", "letterhead", "read", url, "--columns", "offset", "--csv", "-n", "1"]
    answers = {"user of Iggy: ": f"{user}\n", "\npassword: ": f"{password}\n"}
    code, screen = answer(command, answers, IGGY_USERNAME="", IGGY_PASSWORD="")
    assert (code, password in screen) == (0, False), screen
    assert screen.splitlines()[-2:] == ['"offset"', "0"]
