"""The adapter of the reference implementation in plain Python: answers the runner's requests with ``tests/reference``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from letterhead.errors import ErrorDetail, HeaderError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import ops, varint

BYTES = ("id", "key", "value", "payload")
WIDTHS = {"varint": 32, "unsigned-varint": 32, "varlong": 64, "unsigned-varlong": 64}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    verb, format = request.pop("verb"), request.pop("format")
    if "strict_kinds" in request:  # the vectors say kind where this package says type
        request["strict_types"] = request.pop("strict_kinds")
    if format in WIDTHS:
        return number(verb, format, request)
    try:
        if verb == "encode":
            data = ops.encode(given(request.pop("message")), format, **request)
            return {"bytes": None if data is None else data.hex()}
        data = bytes.fromhex(request.pop("bytes"))
        if verb == "decode":
            return {"message": told(ops.decode(data, format, **request))}
        if verb == "messages":
            return {"messages": [told(message) for message in ops.messages(data, format, **request)]}
        if verb == "validate":
            return {"faults": [fault(each) for each in ops.validate(data, format, **request)]}
    except HeaderError as error:
        return {
            "error": {"code": error.code.replace("type", "kind"), "byte": error.byte_offset, "header": error.header}
        }
    return {"unsupported": True}


def number(verb: str, format: str, request: dict[str, Any]) -> dict[str, Any]:
    width, unsigned = WIDTHS[format], format.startswith("unsigned")
    if verb == "encode":
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


def fault(fault: ErrorDetail) -> dict[str, Any]:
    return {"code": fault.code.replace("type", "kind"), "byte": fault.byte_offset, "header": fault.header}


def told(message: Any) -> dict[str, Any]:
    fields = message if isinstance(message, dict) else {"headers": message}
    made = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    if fields["headers"] is not None:
        made["headers"] = [header_told(*header) for header in fields["headers"]]
    return made


def header_told(key: Any, type: str | None, value: bytes | None) -> dict[str, Any]:
    made = (
        {"key": key[1].hex(), "key_kind": key[0].replace("type-", "kind-")} if isinstance(key, tuple) else {"key": key}
    )
    return {**made, "kind": type and type.replace("type-", "kind-"), "value": None if value is None else value.hex()}


def given(message: dict[str, Any]) -> Any:
    fields = {n: bytes.fromhex(v) if n in BYTES and v is not None else v for n, v in message.items()}
    if fields["headers"] is not None:
        fields["headers"] = [header_given(header) for header in fields["headers"]]
    return fields if len(fields) > 1 else fields["headers"]


def header_given(header: dict[str, Any]) -> tuple[Any, str | None, bytes | None]:
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
