"""The adapter of the reference implementation in plain Python: answers the runner's requests with ``tests/reference``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from letterhead.errors import ErrorDetail, HeaderError

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.reference import ops, varint

BYTES = ("id", "key", "value", "payload")
WIDTHS = {"varint": 32, "unsigned-varint": 32, "varlong": 64, "unsigned-varlong": 64}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    operation, format = request.pop("operation"), request.pop("format")
    if "strict_kinds" in request:  # `kind` in the vectors is type in this package
        request["strict_types"] = request.pop("strict_kinds")
    if format in WIDTHS:
        return number(operation, format, request)
    try:
        if operation == "encode":
            data = ops.encode(message_from_json(request.pop("message")), format, **request)
            return {"bytes": None if data is None else data.hex()}
        data = bytes.fromhex(request.pop("bytes"))
        if operation == "decode":
            return {"message": message_as_json(ops.decode(data, format, **request))}
        if operation == "messages":
            return {"messages": [message_as_json(message) for message in ops.messages(data, format, **request)]}
        if operation == "validate":
            return {"errors": [detail(reported) for reported in ops.validate(data, format, **request)]}
    except HeaderError as error:
        return {
            "error": {"code": error.code.replace("type", "kind"), "byte": error.byte_offset, "header": error.header}
        }
    return {"unsupported": True}


def number(operation: str, format: str, request: dict[str, Any]) -> dict[str, Any]:
    width, unsigned = WIDTHS[format], format.startswith("unsigned")
    if operation == "encode":
        bits = request["number"]
        return {"bytes": (varint.write_unsigned(bits) if unsigned else varint.write(bits, width)).hex()}
    try:
        read = varint.read_unsigned(bytes.fromhex(request["bytes"]), width)
    except varint.TooLong:
        return {"error": "varint_too_long"}
    except varint.Truncated:
        return {"error": "truncated"}
    if read.lost and not request.get("lenient"):
        return {"error": "varint_lost_bits"}
    return {"number": read.bits if unsigned else varint.unzigzag(read.bits), "size": read.size}


def detail(error: ErrorDetail) -> dict[str, Any]:
    return {"code": error.code.replace("type", "kind"), "byte": error.byte_offset, "header": error.header}


def message_as_json(message: Any) -> dict[str, Any]:
    fields = message if isinstance(message, dict) else {"headers": message}
    result = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    if fields["headers"] is not None:
        result["headers"] = [header_as_json(*header) for header in fields["headers"]]
    return result


def header_as_json(key: Any, type: str | None, value: bytes | None) -> dict[str, Any]:
    result = (
        {"key": key[1].hex(), "key_kind": key[0].replace("type-", "kind-")} if isinstance(key, tuple) else {"key": key}
    )
    return {**result, "kind": type and type.replace("type-", "kind-"), "value": None if value is None else value.hex()}


def message_from_json(message: dict[str, Any]) -> Any:
    fields = {n: bytes.fromhex(v) if n in BYTES and v is not None else v for n, v in message.items()}
    if fields["headers"] is not None:
        fields["headers"] = [header_from_json(header) for header in fields["headers"]]
    return fields if len(fields) > 1 else fields["headers"]


def header_from_json(header: dict[str, Any]) -> tuple[Any, str | None, bytes | None]:
    key, value = header["key"], header["value"]
    if header.get("key_kind"):
        key = header["key_kind"].replace("kind-", "type-"), bytes.fromhex(key)
    return (
        key,
        (header.get("kind") or "").replace("kind-", "type-") or None,
        None if value is None else bytes.fromhex(value),
    )


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
