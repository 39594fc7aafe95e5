"""Copies to object stores: what appears, how a copy continues, and two copies at once. A server of moto stands for S3."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import letterhead as lh
from letterhead.copies import part_directory, part_files
from letterhead.copies.part_directory import PartDirectory
from tests.helpers.command import Result

moto = pytest.importorskip("moto.server")

Run = Callable[..., Result]

KILLED = """
import sys
from letterhead.copies import part_directory
part_directory.PART_ROWS = 500
import letterhead as lh
write = part_directory.PartDirectory.write
def in_parts(self, batch):
    for start in range(0, len(batch), 100):
        write(self, batch.slice(start, 100))
        print(self.rows, flush=True)
part_directory.PartDirectory.write = in_parts
lh.copy(sys.argv[1], sys.argv[2])
"""


@pytest.fixture(scope="module")
def store() -> Iterator[fs.S3FileSystem]:
    """An S3 that the environment names, with a bucket ``backup``."""
    server = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", address)
        environment.setenv("AWS_ACCESS_KEY_ID", "user")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        filesystem = fs.S3FileSystem(endpoint_override=address, allow_bucket_creation=True)
        filesystem.create_dir("backup")
        yield filesystem
    server.stop()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_directory, "PART_ROWS", 3000)
    write = PartDirectory.write

    def in_parts(directory: PartDirectory, batch: pa.RecordBatch) -> None:
        for start in range(0, len(batch), 1000):
            write(directory, batch.slice(start, 1000))

    monkeypatch.setattr(PartDirectory, "write", in_parts)


def names(store: fs.FileSystem, directory: str) -> list[str]:
    found = store.get_file_info(fs.FileSelector(f"backup/{directory}", allow_not_found=True))
    return sorted(info.base_name for info in found)


def parts(store: fs.FileSystem, directory: str) -> list[str]:
    return [name for name in names(store, directory) if name.startswith("part-")]


def write(store: fs.FileSystem, path: str, content: bytes) -> None:
    with store.open_output_stream(f"backup/{path}") as stream:
        stream.write(content)


def offsets(directory: str) -> list[int]:
    values: list[int] = lh.open(f"s3://backup/{directory}", columns=["offset"]).read_all()["offset"].to_pylist()
    return values


def test_copied_table_equals_log(run: Run, samples: Path, store: fs.FileSystem) -> None:
    options = ["--headers", "tenant,retry:int32", "--edit", "drop ce_id", "--where", "offset >= 5", "--verify"]
    for _ in range(2):
        result = run("copy", samples / "orders-0", "s3://backup/exact", *options)
        assert result.code == 0, result.err
        assert result.lines == ["no record differs; 9,995 equal"]
    assert "0 records copied to s3://backup/exact" in result.err
    assert names(store, "exact") == ["_copy.json", "_copy.lock", f"part-00000-{5:020}-{10_000:020}.parquet"]
    table = lh.open("s3://backup/exact").read_all()
    log = lh.open(samples / "orders-0", where="offset >= 5", headers={"tenant": "string", "retry": "int32"}).read_all()
    others = [name for name in log.column_names if name != "headers"]
    assert table.select(others).equals(log.select(others))
    keys = {header["key"] for row in table["headers"].to_pylist() for header in row}
    assert "traceparent" in keys
    assert "ce_id" not in keys
    compared = run("diff", samples / "orders-0", "s3://backup/exact", "--columns", "key,value")
    assert compared.lines[-1] == "5 only in the first source; 9,995 equal"
    read = run(
        "read", "s3://backup/exact", "--where", "tenant = 'acme' and offset < 100", "--columns", "offset", "--json"
    )
    found = lh.open(samples / "orders-0", columns=["offset"], where="tenant = 'acme' and offset < 100 and offset >= 5")
    assert [json.loads(line) for line in read.lines] == found.read_all().to_pylist()


@pytest.mark.usefixtures("small_parts")
def test_truncated_last_object_is_set_aside_and_copied_again(samples: Path, store: fs.FileSystem) -> None:
    lh.copy(samples / "orders-0", "s3://backup/truncated")
    *_, last = parts(store, "truncated")
    with store.open_input_file(f"backup/truncated/{last}") as file:
        content = file.read()
    write(store, f"truncated/{last}", content[: len(content) // 2])
    assert lh.copy(samples / "orders-0", "s3://backup/truncated").remarks == [
        f"{last} was damaged: it is _damaged-{last} now, and its offsets are copied again"
    ]
    assert offsets("truncated") == list(range(10_000))
    assert lh.copy(samples / "orders-0", "s3://backup/truncated").rows == 0


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.full)])
def test_repeatedly_killed_copy_has_every_record_once(
    kills: int, run: Run, samples: Path, store: fs.FileSystem
) -> None:
    target = f"s3://backup/killed-{kills}"
    chance = random.Random(kills)
    for kill in (True,) * kills + (False,):
        command = [sys.executable, "-c", KILLED, samples / "orders-0", target]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(chance.randrange(5, 20) if kill else 1 << 30):
            if not process.stdout.readline():
                break
        else:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0
    assert len(parts(store, f"killed-{kills}")) > 4
    assert offsets(f"killed-{kills}") == list(range(10_000))
    assert run("diff", samples / "orders-0", target).code == 0


@pytest.mark.usefixtures("small_parts")
def test_later_of_two_copies_continues(samples: Path, store: fs.FileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = part_files.ObjectFiles.publish
    calls = 0

    def disturbed(files: part_files.ObjectFiles, file: Any, name: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            assert lh.copy(samples / "orders-0", "s3://backup/twice").rows == 7_000
        publish(files, file, name)

    monkeypatch.setattr(part_files.ObjectFiles, "publish", disturbed)
    with pytest.raises(ValueError, match="another process copies to s3://backup/twice now, and this one stopped"):
        lh.copy(samples / "orders-0", "s3://backup/twice")
    assert offsets("twice") == list(range(10_000))


@pytest.mark.usefixtures("small_parts")
def test_object_being_uploaded_by_another_copy_is_reported(
    samples: Path, store: fs.FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = f"part-00000-{3000:020}-{3500:020}.parquet"
    publish = part_files.ObjectFiles.publish

    def disturbed(files: part_files.ObjectFiles, file: Any, name: str) -> None:
        if f"-{3000:020}-" in name:
            pq.write_table(
                lh.open(samples / "orders-0").read_all().slice(3000, 500), f"backup/late/{late}", filesystem=store
            )
        publish(files, file, name)

    monkeypatch.setattr(part_files.ObjectFiles, "publish", disturbed)
    with pytest.raises(ValueError, match=f"another process wrote {late} to s3://backup/late during the copy"):
        lh.copy(samples / "orders-0", "s3://backup/late")
    with pytest.raises(ValueError, match="overlaps"):
        lh.copy(samples / "orders-0", "s3://backup/late")
    store.delete_file(f"backup/late/{late}")
    assert lh.copy(samples / "orders-0", "s3://backup/late").rows == 0
    assert offsets("late") == list(range(10_000))


def test_interrupted_upload_leaves_no_object(
    samples: Path, store: fs.FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(part_files.mmap, "mmap", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lh.copy(samples / "orders-0", "s3://backup/interrupted")
    assert parts(store, "interrupted") == []
    assert lh.copy(samples / "orders-0", "s3://backup/interrupted").rows == 10_000


def test_copy_without_records_is_a_table(samples: Path, store: fs.FileSystem) -> None:
    for _ in range(2):
        assert lh.copy(samples / "orders-0", "s3://backup/empty", where="offset < 0").rows == 0
        assert "headers" in lh.open("s3://backup/empty").read_all().column_names


def test_foreign_objects_are_left_alone(samples: Path, store: fs.FileSystem) -> None:
    write(store, "other/notes.txt", b"")
    with pytest.raises(ValueError, match=r"s3://backup/other is not empty, and no copy: it has 'notes\.txt'"):
        lh.copy(samples / "orders-0", "s3://backup/other")
    with pytest.raises(FileNotFoundError, match="has no Parquet files"):
        lh.open("s3://backup/other")
    with pytest.raises(FileNotFoundError):
        lh.open("s3://backup/absent")


def test_tables_in_any_form_are_read(samples: Path, store: fs.FileSystem) -> None:
    table = lh.open(samples / "orders-0.parquet").read_all()
    pq.write_table(table, "backup/tables/orders.parquet", filesystem=store)
    lines = b'{"offset":1,"headers":[{"key":"a","value":"b"}]}\n' * 3
    write(store, "tables/orders.jsonl", lines)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    write(store, "tables/orders.arrow", stream.getvalue().to_pybytes())
    for name in ("orders.parquet", "orders.arrow"):
        assert lh.open(f"s3://backup/tables/{name}").read_all().equals(table)
    assert lh.open("s3://backup/tables/orders.jsonl").read_all()["offset"].to_pylist() == [1] * 3


def test_file_appears_in_store_when_it_is_complete(run: Run, samples: Path, store: fs.FileSystem) -> None:
    for name in ("orders.arrow", "orders.jsonl.zst"):
        result = run("copy", samples / "orders-0", f"s3://backup/files/{name}", "--verify")
        assert (result.code, result.lines) == (0, ["no record differs; 10,000 equal"]), result.err
    refused = run("copy", samples / "orders-0", "s3://backup/files/orders.arrow")
    assert refused.code == 3
    assert "s3://backup/files/orders.arrow exists: name another file" in refused.err
    assert names(store, "files") == ["orders.arrow", "orders.jsonl.zst"]


def test_store_errors_are_not_damage_and_hide_secrets(run: Run, samples: Path, store: fs.FileSystem) -> None:
    result = run("copy", samples / "orders-0", "s3://nobucket/copy")
    assert result.code == 3
    assert "AWS Error" in result.err
    assert "Traceback" not in result.err
    host = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    address = f"s3://user:hidden@backup/secret?scheme=http&endpoint_override={host}"
    done = run("copy", samples / "orders-0", address, "--verify")
    assert done.code == 0, done.err
    assert "hidden" not in done.out + done.err
    assert "copied to s3://backup/secret" in done.err
    read = run("read", address, "--json")
    assert (read.code, "hidden" in read.err) == (0, False)


def test_fsspec_file_systems_are_copied_to(samples: Path) -> None:
    pytest.importorskip("fsspec")
    for rows in (10_000, 0):
        assert lh.copy(samples / "orders-0", "fsspec+memory://copies/orders").rows == rows
    assert lh.open("fsspec+memory://copies/orders").read_all().num_rows == 10_000
