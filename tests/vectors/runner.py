#!/usr/bin/env python3
"""Run the vectors over an implementation in any language, and say what holds.

The implementation is a program. It gets one JSON object a line on standard input, a request, and answers each with one
line on standard output, before it gets the next. ``README.md`` has the requests and the answers; ``adapters/`` has two
such programs. This file needs Python 3.11 and nothing else.

Public things come first: a case is one line of a file, seen as one format, and the exchanges that it stands for.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import queue
import shlex
import subprocess
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent

EXAMPLES = """\
examples:
  runner.py -- ./my-adapter                          all cases
  runner.py --only kafka --only streams -- java -jar my-adapter.jar
  runner.py --file headers -- node adapter.js        one file
  runner.py --codes -- python adapters/native.py     the codes and places of errors, too
  runner.py --json -- ./my-adapter > report.json     for a machine

exit status: 0 if all that was answered holds, 1 if a case fails or nothing was answered, 2 if it could not be run
"""

Line = dict[str, Any]
Request = dict[str, Any]


class Wrong(Exception):
    """An answer that is not the expected one."""


class Check(NamedTuple):
    """What an answer has to be.

    Attributes
    ----------
    says : str
        The same in words.
    holds : callable
        Raises :class:`Wrong` if an answer is not so.
    """

    says: str
    holds: Callable[[Any], None]


class Exchange(NamedTuple):
    """A request, and what its answer has to be."""

    request: Request
    check: Check


class Case(NamedTuple):
    """What one line of a file says of one format."""

    format: str
    file: str
    line: int
    name: str
    exchanges: list[Exchange]


class Result(NamedTuple):
    """What became of a case: ``passed``, ``failed`` or ``unsupported``, and why."""

    case: Case
    outcome: str
    why: str | None = None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="runner.py",
        usage="%(prog)s [options] -- COMMAND [ARGUMENT ...]",
        description="Run the vectors over an implementation: a program that answers a JSON object a line.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", metavar="FORMAT", help="cases of this format; can be repeated")
    parser.add_argument("--file", action="append", metavar="NAME", help="cases of this file; can be repeated")
    parser.add_argument("--codes", action="store_true", help="compare the codes and places of errors, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--failures", type=int, default=20, metavar="N", help="how many failures to show (20)")
    parser.add_argument("--timeout", type=float, default=30, metavar="S", help="seconds an answer may take (30)")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the program to ask, and its arguments")
    source = parser.parse_args(arguments)
    if not source.command:
        parser.error("say which program to ask: runner.py -- ./my-adapter")
    for names, known in ((source.only, FORMATS), (source.file, FILES)):
        for name in names or ():
            if name not in known:
                parser.error(f"there is no {name!r}: {', '.join(known)}")
    requested = [case for case in cases(codes=source.codes) if source.only is None or case.format in source.only]
    requested = [case for case in requested if source.file is None or case.file in source.file]
    if not requested:
        parser.error("no case is of these formats and in these files")
    try:
        with Implementation(source.command, source.timeout) as implementation:
            results = [run(implementation, case) for case in requested]
    except OSError as error:
        print(f"{shlex.join(source.command)}: {error.strerror}", file=sys.stderr)
        return 2
    report = reported(results, source.failures)
    print(json.dumps(report, indent=1) if source.json else shown(report))
    return 1 if report["failed"] or not report["passed"] else 0


# --- running ---------------------------------------------------------------------------------------------------------


class Implementation:
    """The program that is asked; it is started again after it ended or kept silent.

    Parameters
    ----------
    command : list of str
        The program and its arguments.
    timeout : float
        Seconds it may take for an answer.
    """

    def __init__(self, command: list[str], timeout: float) -> None:
        self._command = command
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._start()

    def __enter__(self) -> Implementation:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop()

    def ask(self, request: Request) -> Any:
        """Return the answer to a request.

        Raises
        ------
        Wrong
            If there is none.
        """
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._lines.get(timeout=self._timeout)
        except OSError:
            line = None
        except queue.Empty:
            process.kill()
            self._stop()
            raise Wrong(f"no answer within {self._timeout:g} seconds") from None
        if line is None:
            status = self._stop()
            raise Wrong(f"the program ended with status {status}")
        try:
            return json.loads(line)
        except ValueError:
            raise Wrong(f"the answer is no JSON: {_short(line)}") from None

    def _start(self) -> None:
        self._process = process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(process, self._lines), daemon=True).start()

    def _stop(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout, contextlib.suppress(UnicodeDecodeError):
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def run(implementation: Implementation, case: Case) -> Result:
    """Run one case: all its exchanges, up to the first that fails."""
    outcome = "passed"
    for request, check in case.exchanges:
        try:
            answer = implementation.ask(request)
            if not isinstance(answer, dict):
                raise Wrong(f"the answer is no object: {_short(answer)}")
            if answer.get("unsupported"):
                outcome = "unsupported"
                continue
            check.holds(answer)
        except Wrong as wrong:
            return Result(case, "failed", f"{_short(request)}: expected {check.says}; {wrong}")
    return Result(case, outcome)


def reported(results: list[Result], most: int) -> dict[str, Any]:
    """Count the results by format and file, and name what failed."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for case, outcome, _ in results:
        rows.setdefault((case.format, case.file), Counter())[outcome] += 1
    failed = [result for result in results if result.outcome == "failed"]
    outcomes = ("passed", "failed", "unsupported")
    return {
        "cases": len(results),
        **{outcome: sum(row[outcome] for row in rows.values()) for outcome in outcomes},
        "files": [
            {"format": format, "file": file, "cases": row.total(), **{outcome: row[outcome] for outcome in outcomes}}
            for (format, file), row in sorted(rows.items(), key=lambda row: (FORMATS.index(row[0][0]), row[0][1]))
        ],
        "failures": [
            {"format": case.format, "file": case.file, "line": case.line, "case": case.name, "why": why}
            for case, _, why in failed[:most]
        ],
    }


def shown(report: dict[str, Any]) -> str:
    """Write a report as text."""
    names = ("format", "file", "cases", "passed", "failed", "unsupported")
    total = {"format": "total", "file": "", **{name: report[name] for name in names[2:]}}
    rows = [dict(zip(names, names, strict=True)), *report["files"], total]
    widths = {name: max(len(str(row[name])) for row in rows) for name in names}
    left = {name: f"<{width}" if name in names[:2] else f">{width}" for name, width in widths.items()}
    lines = ["  ".join(format(str(row[name]), left[name]) for name in names) for row in rows]
    for failure in report["failures"]:
        where = f"{failure['file']}.jsonl:{failure['line']}"
        lines.append(f"\nFAILED {failure['format']} {where} ({failure['case']})\n  {failure['why']}")
    hidden = report["failed"] - len(report["failures"])
    if hidden > 0:
        lines.append(f"\nand {hidden} more: --failures {report['failed']} shows all")
    return "\n".join(lines)


# --- cases -----------------------------------------------------------------------------------------------------------


def cases(*, codes: bool = False) -> Iterator[Case]:
    """Return all cases, in the order of the files.

    Parameters
    ----------
    codes : bool, default False
        Whether codes and places of errors are part of what is expected.
    """
    for file, make in FILES.items():
        for number, line in enumerate((HERE / f"{file}.jsonl").read_text("utf-8").rstrip("\n").split("\n"), 1):
            result: dict[str, list[Exchange]] = {}
            for format, request, check in make(json.loads(line), number, codes):
                result.setdefault(format, []).append(Exchange({"format": format, **request}, check))
            for format, exchanges in result.items():
                yield Case(format, file, number, named(line, number), exchanges)


def named(line: str, number: int) -> str:
    """Name a line: by its identifier, or by its number where it has none."""
    return str(json.loads(line).get("id", number))


Exchanges = Iterator[tuple[str, Request, Check]]


def _decode(format: str, data: str, check: Check, **options: bool) -> tuple[str, Request, Check]:
    return format, {"operation": "decode", "bytes": data, **options}, check


def _messages(format: str, data: str, check: Check, **options: bool) -> tuple[str, Request, Check]:
    return format, {"operation": "messages", "bytes": data, **options}, check


def _encode(format: str, message: Any, check: Check, **options: Any) -> tuple[str, Request, Check]:
    return format, {"operation": "encode", "message": message, **options}, check


def _varints(line: Line, _: int, codes: bool) -> Exchanges:
    """Numbers alone; and varints of 32 bits as the count of a block, as the length of a key, as a size."""
    format = line["kind"].replace("_", "-")
    bits = 64 if format.endswith("varlong") else 32
    data = line.get("hex", line.get("decode_hex"))
    if "error" in line:
        code = "varint_too_long" if line["error"]["message"] else "truncated"
        yield _decode(format, data, refused(codes, code))
        if format == "varint":
            yield _decode("streams", data, refused(codes, code))
            yield _decode("streams", data, refused(codes, code), lenient=True)
        return
    number = int(line["value"])
    number = number % (1 << bits) if format.startswith("unsigned") else number
    if "hex" in line:
        yield format, {"operation": "encode", "number": number}, written(data)
    size = line.get("consumed", line.get("size"))
    data = data[: 2 * size]
    lost = size == -(-bits // 7) and int(data[-2:], 16) >> (bits - 7 * (size - 1)) > 0
    read = numbered(number, size)
    yield _decode(format, data, refused(codes, "varint_lost_bits") if lost else read)
    yield _decode(format, data, read, lenient=True)
    if format != "varint":
        return
    if "hex" in line and 0 <= number <= 1 << 16:
        key = "k" * number
        block = "02" + data + key.encode().hex() + "01"
        yield _encode("kafka", {"headers": [{"key": key, "value": None}]}, written(block))
    none = message({"headers": []})
    many = refused(codes, "count_too_large")
    strict = refused(codes, "varint_lost_bits") if lost else refused(codes, "negative_count")
    yield _decode("kafka", data, strict if lost or number < 0 else many if number else none)
    yield _decode("kafka", data, many if number > 0 else none, lenient=True)


def _headers(line: Line, _: int, codes: bool) -> Exchanges:
    if "decode_hex" in line:
        data, read = line["decode_hex"], {"headers": line["decoded"]}
        # Some of these keys look wrong and are UTF-8: they are read and written unchanged.
        whole = line["reencoded"] == data
        yield _decode("kafka", data, message(read) if whole else refused(codes, "key_not_utf8"))
        yield _decode("kafka", data, message(read), lenient=True)
        yield _encode("kafka", read, written(line["reencoded"]))
        return
    yield from _written_and_read("kafka", {"headers": line["headers"]}, line["hex"], line.get("decoded"), codes)


def _timestamped(line: Line, _: int, codes: bool) -> Exchanges:
    format = "streams-timestamped"
    if line["hex"] is None:
        yield _encode(format, {"headers": [], "timestamp": 0, "payload": None}, written(None))
        return
    fields = {"timestamp": int(line["timestamp"]), "payload": line["value"]}
    source = {"headers": line["headers"], **fields}
    yield from _written_and_read(format, source, line["hex"], line.get("decoded_headers"), codes)
    yield _encode(format, {"headers": [], **fields}, written("00" + line["timestamped_hex"]))


def _aggregation(line: Line, _: int, codes: bool) -> Exchanges:
    if "error" in line:
        source = {"headers": None, "payload": ""}
        yield _encode("streams", source, refused(codes, "null_not_carried"), nulls="raise")
        yield _encode("streams", source, written("00"))
    elif line["hex"] is None:
        yield _encode("streams", {"headers": [], "payload": None}, written(None))
    else:
        source = {"headers": line["headers"], "payload": line["aggregation"]}
        yield from _written_and_read("streams", source, line["hex"], line.get("decoded_headers"), codes)


def _written_and_read(format: str, source: Any, data: str, read: list[Any] | None, codes: bool) -> Exchanges:
    lone = any("\ud800" <= unit <= "\udfff" for header in source["headers"] or () for unit in header["key"])
    # Java writes a question mark for half of a surrogate pair; that is another key.
    yield _encode(format, source, refused(codes, "key_not_utf8") if lone else written(data))
    expected = message({**source, "headers": (source["headers"] or []) if read is None else read})
    yield _decode(format, data, expected)
    yield _decode(format, data, expected, lenient=True)


MODELS = {
    "kafka": ("HeadersDeserializer.deserialize",),
    "streams": ("AggregationWithHeadersDeserializer.deserialize", "Utils.headers"),
    "streams-timestamped": ("ValueTimestampHeadersDeserializer.deserialize",),
}
"""Which readers of Kafka say what a lenient reading gives."""


def _malformed(line: Line, number: int, codes: bool) -> Exchanges:
    """Bytes that Java reads are read leniently; ``strict.json`` says which of them a strict reading refuses, and why."""
    for format, models in MODELS.items():
        strict = next((code for code, lines in _strict()[format].items() if number in lines), None)
        for model in models:
            java = line["targets"][model]
            if "ok" not in java:
                yield _decode(format, line["input"], refused(codes), lenient=True)
                yield _decode(format, line["input"], refused(codes))
                continue
            names = {"value": "payload", "aggregation": "payload"}
            fields = {names.get(name, name): value for name, value in java["ok"].items()}
            read = message({n: int(value) if n == "timestamp" else value for n, value in fields.items()})
            yield _decode(format, line["input"], read, lenient=True)
            yield _decode(format, line["input"], read if strict is None else refused(codes, strict))


@functools.cache
def _strict() -> dict[str, dict[str, list[int]]]:
    malformed: dict[str, dict[str, list[int]]] = json.loads((HERE / "strict.json").read_text())["malformed"]
    return malformed


def _conversions(line: Line, _: int, codes: bool) -> Exchanges:
    """Older stored values and changelog records, written as messages."""
    if line["kind"] == "format":
        payload = line["input"]
        plain = written(line["HeadersBytesStore.convertToHeaderFormat"])
        stamped = written(line["HeadersBytesStore.convertFromPlainToHeaderFormat"])
        yield _encode("streams", {"headers": [], "payload": payload}, plain)
        yield _encode("streams-timestamped", {"headers": [], "timestamp": -1, "payload": payload}, stamped)
        return
    source = {"headers": line["headers"], "payload": line["value"]}
    times = {"timestamp": int(line["timestamp"])}
    for format, fields, name in (
        ("streams-timestamped", times, "rawValueToHeadersValue"),
        ("streams", {}, "rawValueToSessionHeadersValue"),
    ):
        data = written(line[name])
        yield _encode(format, {**source, **fields}, data, on_loss="drop")
        lost = line["value"] is None and line["headers"]
        yield _encode(format, {**source, **fields}, refused(codes, "null_not_carried") if lost else data)


_TIMESTAMP_TYPES = {"NoTimestampType": None, "CreateTime": 0, "LogAppendTime": 1}


def _record_batches(line: Line, _: int, codes: bool) -> Exchanges:
    batches = line["batches"]
    records = [_record(batch, record) for batch in batches for record in batch["records"]]
    whole = sum(batch["size_in_bytes"] for batch in batches) == len(line["hex"]) // 2
    yield _messages("record-batch", line["hex"], all_messages(records), lenient=True)
    yield _messages("record-batch", line["hex"], all_messages(records) if whole else refused(codes, "truncated"))
    if batches and all(batch["magic"] < 2 for batch in batches):
        names = ["offset", "key", "value", "headers", *(["timestamp"] if batches[0]["magic"] else [])]
        older = [{name: record[name] for name in names} for record in records]
        yield _messages("kip82-messages", line["hex"], all_messages(older), lenient=True)


def _record(batch: Line, record: Line) -> Line:
    def known(number: Any) -> int | None:
        return None if int(number) == -1 else int(number)

    return {
        "offset": int(record["offset"]),
        "timestamp": int(record["timestamp"]) if batch["magic"] else None,
        "timestamp_type": _TIMESTAMP_TYPES[batch["timestamp_type"]],
        "key": record["key"],
        "value": record["value"],
        "headers": record["headers"] if batch["magic"] == 2 else None,
        "producer_id": known(batch.get("producer_id", -1)),
        "producer_epoch": known(batch.get("producer_epoch", -1)),
        "sequence": known(record["sequence"]),
        "transactional": bool(batch.get("transactional")),
        "control": bool(batch.get("control")),
    }


def _drafts(line: Line, _: int, codes: bool) -> Exchanges:
    format, op = line["format"], line["op"]
    if op == "encode":
        error = line["error"]
        yield _encode(format, line["message"], refused(codes, error["code"], header=error["header"]))
        return
    options = {"lenient": True} if line.get("lenient") else {}
    errors = line.get("errors") or ([line["error"]] if line.get("error") else [])
    if codes:
        yield format, {"operation": "validate", "bytes": line["bytes"], **options}, faulted(errors)
    ask = _messages if op == "messages" else _decode
    if errors:
        first = errors[0]
        yield ask(format, line["bytes"], refused(codes, first["code"], first["byte"], first["header"]), **options)
    elif op == "messages":
        yield ask(format, line["bytes"], all_messages(line["messages"]), **options)
    else:
        yield ask(format, line["bytes"], message(line["message"]), **options)
        if op == "both":
            yield _encode(format, line["message"], written(line["bytes"]))


# Iggy's own lines have the bytes of a number as the wire has them, least significant first.
_TURNED = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64, 128)}
_TURNED |= {"bool", "float32", "float64"}  # a bool of several bytes is none, and turned all the same


def _iggy_headers(line: Line, _: int, codes: bool) -> Exchanges:
    format = _iggy_format(line)
    source = {"headers": _entries(line["entries"])}
    for name in (format, "iggy-auto"):
        yield _decode(name, line["bytes"], message(source))
    yield _encode(format, source, written(line["bytes"]))
    if "input" in line:
        yield _encode(format, {"headers": _entries(line["input"])}, written(line["bytes"]), canonical=True)


def _iggy_malformed(line: Line, _: int, codes: bool) -> Exchanges:
    """What the crate makes an error, a panic, or no headers with a line in its log, is refused."""
    format, expect = _iggy_format(line), line["expect"]
    if "ok" in expect:
        yield _decode(format, line["bytes"], mapped(_entries(expect["ok"])))
        return
    # Types without a name: the crate rejects them, and so does a reader with `strict_kinds`.
    unknown = format == "iggy" and expect.get("error", {}).get("code") == 4040
    yield _decode(format, line["bytes"], refused(codes), **({"strict_kinds": True} if unknown else {}))


def _iggy_messages(line: Line, _: int, codes: bool) -> Exchanges:
    data, op = line["bytes"], line["op"]
    if op in ("message", "message64"):
        format = "iggy-message-2023" if op == "message" else "iggy-message"
        names = ("checksum", "offset", "timestamp", "origin_timestamp") if op == "message64" else ()
        source = {**_sent(line), **{name: line[name] for name in names}}
        yield _decode(format, data, message(source))
        yield _encode(format, source, written(data))
    elif op == "polled":
        # The checksums of these lines are of no payload. With the right one in its place all is read.
        source = {**_sent(line), **{name: line[name] for name in ("offset", "state", "timestamp")}}
        source["checksum"] = zlib.crc32(bytes.fromhex(line["payload"]))
        at = 2 * _CHECKSUM_AT
        mended = data[:at] + source["checksum"].to_bytes(4, "little").hex() + data[at + 8 :]
        yield _messages("iggy-polled-2023", data, refused(codes, "bad_crc"))
        yield _messages("iggy-polled-2023", mended, all_messages([source]))
    elif op == "send_messages":
        for body, sent in zip(_bodies(data), line["messages"], strict=True):
            yield _decode("iggy-message-2023", body, message(_sent(sent)))
            yield _encode("iggy-message-2023", _sent(sent), written(body))
    else:
        sent = [{**_sent(message), "origin_timestamp": message["origin_timestamp"]} for message in line["messages"]]
        yield _messages("iggy-batch", data[2 * line["batch_at"] :], all_messages(sent))


_CHECKSUM_AT = 8 + 1 + 8 + 16
"""Where the checksum of a message as polled is: after offset, state, timestamp and id."""


def _bodies(request: str) -> list[str]:
    """Cut a request to send into its messages, behind stream, topic and partitioning: each a type, a length, bytes."""
    data, at, messages = bytes.fromhex(request), 0, []
    for _ in range(3):
        at += 2 + data[at + 1]
    while at < len(data):
        start = at
        at += 16
        for _ in range(2):
            at += 4 + int.from_bytes(data[at : at + 4], "little")
        messages.append(data[start:at].hex())
    return messages


def _iggy_limits(line: Line, _: int, codes: bool) -> Exchanges:
    """How large the headers of one message may be; requests of several messages are no bytes of a format."""
    format = "iggy-2023" if line["op"] == "seed_limit" else "iggy"
    if line.get("messages", 1) > 1:
        return
    lengths = line.get("value_lens") or [line["value_len"]] * (line["n"] - 1) + [line["last_value_len"]]
    values = [bytes((i * 7 + j) & 255 for j in range(length)) for i, length in enumerate(lengths)]
    headers = [{"key": f"k{i:05}", "kind": "binary", "value": value.hex()} for i, value in enumerate(values)]
    verdict = line.get("build", line.get("send_messages_validate"))
    digest = line.get("sha256", line.get("sha256_in_recipe_order"))
    check = hashed(digest) if verdict == "ok" else refused(codes, "too_large")
    yield _encode(format, {"headers": headers}, check)


def _iggy_format(line: Line) -> str:
    return "iggy-2023" if line["id"].startswith("seed_") else "iggy"


def _sent(line: Line) -> Line:
    source = {"id": f"{int(line['message_id']):032x}", "payload": line["payload"]}
    return {**source, "headers": _entries(line["headers"] or [])}


def _entries(entries: list[Line]) -> list[Line]:
    result = []
    for entry in entries:
        key = _field(entry["key"])
        text = _text(key["value"]) if key["kind"] == "string" else None
        name: Line = {"key": key["value"], "key_kind": key["kind"]} if text is None else {"key": text}
        result.append({**name, **_field(entry["value"])})
    return result


def _field(field: Line) -> Line:
    data = bytes.fromhex(field["hex"])
    data = data[::-1] if field["kind"] in _TURNED else data
    return {"kind": "binary" if field["kind"] == "raw" else field["kind"], "value": data.hex()}


FILES: dict[str, Callable[[Line, int, bool], Exchanges]] = {
    "varints": _varints,
    "headers": _headers,
    "value_timestamp_headers": _timestamped,
    "aggregation_with_headers": _aggregation,
    "malformed": _malformed,
    "conversions": _conversions,
    "record_batches": _record_batches,
    "kip82_typed": _drafts,
    "kip82_int": _drafts,
    "kip82_wrapper": _drafts,
    "kip82_message": _drafts,
    "kip82_message_int": _drafts,
    "kip82_message_wrapper": _drafts,
    "kip82_messages": _drafts,
    "kip82_messages_int": _drafts,
    "kip82_messages_wrapper": _drafts,
    "iggy_seed_headers": _iggy_headers,
    "iggy_tlv_headers": _iggy_headers,
    "iggy_seed_malformed": _iggy_malformed,
    "iggy_tlv_malformed": _iggy_malformed,
    "iggy_seed_messages": _iggy_messages,
    "iggy_tlv_messages": _iggy_messages,
    "iggy_limits": _iggy_limits,
}
"""The files whose lines are about bytes, by name, and what makes exchanges of a line."""

FORMATS = [
    *("varint", "unsigned-varint", "varlong", "unsigned-varlong"),
    *("kafka", "streams", "streams-timestamped", "record-batch"),
    *("kip82-typed", "kip82-int", "kip82-wrapper"),
    *("kip82-message", "kip82-message-int", "kip82-message-wrapper"),
    *("kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"),
    *("iggy", "iggy-2023", "iggy-auto"),
    *("iggy-message", "iggy-message-2023", "iggy-batch", "iggy-polled-2023"),
]
"""The formats that cases are of. The first four are numbers alone, which an implementation need not give away."""


# --- what answers have to be -----------------------------------------------------------------------------------------


def written(data: str | None) -> Check:
    """These bytes."""

    def holds(answer: Any) -> None:
        got = _of(answer, "bytes")
        if (got.lower() if isinstance(got, str) else got) != data:
            raise Wrong(f"got {_short(got)}")

    return Check(f"the bytes {_short(data)}", holds)


def hashed(digest: str) -> Check:
    """Bytes with this SHA-256."""

    def holds(answer: Any) -> None:
        got = _of(answer, "bytes")
        if not isinstance(got, str) or hashlib.sha256(bytes.fromhex(got)).hexdigest() != digest:
            raise Wrong(f"got {_short(got)}")

    return Check(f"bytes with the SHA-256 {digest}", holds)


def numbered(number: int, size: int) -> Check:
    """A number, in so many bytes."""

    def holds(answer: Any) -> None:
        got = _number(_of(answer, "number")), _number(_of(answer, "size"))
        if got != (number, size):
            raise Wrong(f"got {got[0]} in {got[1]} bytes")

    return Check(f"{number} in {size} bytes", holds)


def message(expected: Line) -> Check:
    """A message with these fields; what else it has is not looked at."""

    def holds(answer: Any) -> None:
        _same(expected, _of(answer, "message"), "message")

    return Check(f"the message {_short(expected)}", holds)


def all_messages(expected: list[Line]) -> Check:
    """These messages."""

    def holds(answer: Any) -> None:
        got = _of(answer, "messages")
        if not isinstance(got, list) or len(got) != len(expected):
            raise Wrong(f"got {len(got) if isinstance(got, list) else _short(got)}")
        for number, (message, result) in enumerate(zip(expected, got, strict=True)):
            _same(message, result, f"message {number}")

    return Check(f"{len(expected)} messages", holds)


def mapped(expected: list[Line]) -> Check:
    """These headers where each key counts once, with its last value, and the order does not count."""
    expected_headers = _plain_headers(expected)

    def holds(answer: Any) -> None:
        got = _of(answer, "message")
        headers = _plain_headers(got.get("headers") if isinstance(got, dict) else None)
        expected_by_key, headers_by_key = (
            {header[:2]: header[2:] for header in side or ()} for side in (expected_headers, headers)
        )
        if expected_by_key != headers_by_key:
            raise Wrong(f"got {_short(got)}")

    return Check(f"the headers {_short(expected)} in any order", holds)


def refused(codes: bool, code: str | None = None, byte: int | None = None, header: int | None = None) -> Check:
    """An error; where codes count, with this code, byte and header, as far as they are known."""

    def holds(answer: Any) -> None:
        if not answer.get("error"):
            raise Wrong(f"got {_short(answer)}")
        if codes:
            got = answer["error"] if isinstance(answer["error"], dict) else {"code": answer["error"]}
            known = {"code": code, "byte": byte, "header": header}
            if any(got.get(name) != value for name, value in known.items() if value is not None):
                raise Wrong(f"got {_short(got)}")

    where = f" at byte {byte}" if byte is not None else ""
    return Check(f"an error {code}{where}" if codes and code else "an error", holds)


def faulted(expected: list[Line]) -> Check:
    """Exactly these errors: code, byte and header of each."""

    def holds(answer: Any) -> None:
        names = ("code", "byte", "header")
        got = [[error.get(name) for name in names] for error in _of(answer, "errors")]
        if got != [[error.get(name) for name in names] for error in expected]:
            raise Wrong(f"got {_short(got)}")

    return Check(f"{len(expected)} errors", holds)


def _of(answer: Any, name: str) -> Any:
    if answer.get("error"):
        raise Wrong(f"got the error {_short(answer['error'])}")
    if name not in answer:
        raise Wrong(f"the answer has no {name!r}: {_short(answer)}")
    return answer[name]


def _same(expected: Line, got: Any, subject: str) -> None:
    if not isinstance(got, dict):
        raise Wrong(f"the {subject} is no object: {_short(got)}")
    for name, value in expected.items():
        if name not in got:
            raise Wrong(f"the {subject} has no {name!r}")
        if name == "headers":
            expected_value, other = _plain_headers(value), _plain_headers(got[name])
        else:
            expected_value, other = value, got[name]
            if isinstance(expected_value, int) and not isinstance(expected_value, bool):
                other = _number(other)
            elif isinstance(expected_value, str) and isinstance(other, str):
                other = other.lower()
        if expected_value != other or isinstance(expected_value, bool) != isinstance(other, bool):
            raise Wrong(f"the {subject} has {name} {_short(got[name])}")


def _plain_headers(headers: Any) -> list[tuple[Any, ...]] | None:
    if headers is None:
        return None
    if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
        raise Wrong(f"headers are no list of objects: {_short(headers)}")
    result = []
    for header in headers:
        key, type_name, value = header.get("key"), header.get("key_kind"), header.get("value")
        if type_name is not None and isinstance(key, str):
            # A text key has no type, however it was passed.
            text = _text(key) if type_name == "string" else None
            type_name, key = (type_name, key.lower()) if text is None else (None, text)
        result.append((type_name, key, header.get("kind"), value.lower() if isinstance(value, str) else value))
    return result


def _text(digits: str) -> str | None:
    try:
        return bytes.fromhex(digits).decode()
    except ValueError:
        return None


def _number(source: Any) -> Any:
    """Accept a number as it is or in decimals: not every language has all numbers of 64 bits in JSON."""
    try:
        return int(source) if isinstance(source, str) else source
    except ValueError:
        return source


def _short(thing: Any) -> str:
    text = thing if isinstance(thing, str) else json.dumps(thing)
    return text if len(text) <= 160 else f"{text[:120]}... ({len(text)} characters)"


if __name__ == "__main__":
    sys.exit(main())
