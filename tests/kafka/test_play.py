"""`make kafka`, and what it tells a person to paste."""

from __future__ import annotations

import ast
import os
import re
import shlex
import socket

import pytest

from letterhead.cli import main
from tests.helpers.pages import blocks, run
from tests.kafka import play
from tests.kafka.broker import Broker, java
from tests.kafka.topics import consume, create, damage, orders, produce
from tests.versions import KAFKA

pytestmark = [pytest.mark.broker, pytest.mark.full]


def test_local_broker_starts_once_and_stops(tmp_path, samples, capsys):
    broker = Broker(tmp_path / "play")
    try:
        output = play.start(broker)
        process = broker.process
        assert f"Kafka {KAFKA} runs at {broker.address};" in output
        assert play.start(broker) == output
        assert broker.process == process
        records, harmed = damage(orders(samples, play.COUNT))
        assert f"{len(records):,} records of the bundled topic; {len(harmed)} have" in output
        sent = consume(broker.address, "orders").values()
        assert sorted(map(repr, sent)) == sorted(map(repr, records))
        assert consume(broker.address, "orders-clean") == {}
        [line] = [line for line in output.splitlines() if "--value avro" in line]
        assert main(shlex.split(line)[1:]) == 0
        assert '{"id":99' in capsys.readouterr().out
    finally:
        play.stop(broker)
    assert broker.process is None
    play.stop(broker)


@pytest.fixture(scope="module")
def filled(broker, samples):
    create(broker, "orders")
    produce(broker, "orders", damage(orders(samples, 2_000))[0])
    return broker


def test_spark_example_runs(filled, spark, capsys):
    exec(play.SNIPPET.format(address=filled), {"spark": spark})
    printed = capsys.readouterr().out
    assert re.search(r"\|umbrella\| +\d+\|", printed)
    assert "the value is not UTF-8" in printed


def test_python_example_runs(filled, capsys):
    exec(play.LINES.format(address=filled), {})
    assert re.search(r"umbrella +\d", capsys.readouterr().out)


def test_shell_example_runs(filled, capsys):
    lines = [shlex.split(line) for line in play.SHELL.format(address=filled, letterhead="letterhead").splitlines()]
    assert {program for program, *_ in lines} == {"letterhead"}
    assert [main(arguments) for _, *arguments in lines] == [0, 0, 1]  # the last one meets records that were damaged
    assert re.search(r"umbrella +\d+", capsys.readouterr().out)


def test_broker_that_fails_to_start_reports_reason(tmp_path):
    broker = Broker(tmp_path / "broker")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=r"(?s)the broker ended with 1:.*Address already in use"):
            broker.start(port)
    assert broker.process is None


def test_slow_program_shows_its_threads():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        with pytest.raises(RuntimeError, match=r"(?s)Consume took more than 4 s; its threads:.*Consume\.main"):
            java("letterhead.testing.broker.Consume", address, "orders", limit=4)


def test_reused_pid_of_another_program_is_left_alone(tmp_path):

    broker = Broker(tmp_path)
    (tmp_path / "pid").write_text(str(os.getpid()))
    assert broker.process is None
    broker.stop()


def test_first_page_prints_rows_of_this_topic(filled, spark, capsys):
    page = "docs/index.md"
    before, after, whole = blocks(page, "text")
    names = {"spark": spark}
    run(page, names, there={"localhost:9092": filled})
    assert capsys.readouterr().out.strip() == whole.strip()
    names["topic"] = names["topic"].where("partition = 0 and offset between 24 and 25")
    for info, shown in (("python before", before), ("python after", after)):
        [code] = blocks(page, info)
        *lines, last = ast.parse(code).body
        exec(compile(ast.Module(lines, []), page, "exec"), names)
        eval(compile(ast.Expression(last.value), page, "eval"), names).show(truncate=False)
        assert capsys.readouterr().out.strip() == shown.strip()


def test_first_readme_query_prints_rows_of_this_topic(filled, spark, capsys):
    run("README.md", {"spark": spark}, "python spark", there={"localhost:9092": filled})
    assert capsys.readouterr().out.strip() == blocks("README.md", "text")[0].strip()
