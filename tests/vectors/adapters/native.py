"""The adapter of letterhead itself: answers the runner's requests with the native module."""

from __future__ import annotations

import json
import sys
from typing import Any

import letterhead as lh
from letterhead.errors import HeaderError
from letterhead.values import value_from_message

BYTES = ("id", "key", "value", "payload")
NUMBERS = ("varint", "unsigned-varint", "varlong", "unsigned-varlong")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    operation, format = request.pop("operation"), request.pop("format")
    if "strict_kinds" in request:  # `kind` in the vectors is type in this package
        request["strict_types"] = request.pop("strict_kinds")
    if format in NUMBERS:
        return {"unsupported": True}  # Python sees no number alone
    try:
        if operation == "encode":
            data = lh.encode(message_from_json(request.pop("message")), format, **request)
            return {"bytes": None if data is None else data.hex()}
        data = bytes.fromhex(request.pop("bytes"))
        if operation == "decode":
            return {"message": message_as_json(lh.decode(data, format, **request))}
        if operation == "messages":
            return {"messages": [message_as_json(message) for message in lh.messages(data, format, **request)]}
        if operation == "validate":
            return {"errors": [detail(error) for error in lh.validate(data, format, **request)]}
    except HeaderError as error:
        return {"error": detail(error)}
    except UnicodeEncodeError:
        return {"error": "key_not_utf8"}  # half of a surrogate pair
    return {"unsupported": True}


def detail(error: HeaderError) -> dict[str, Any]:
    return {"code": error.code.replace("type", "kind"), "byte": error.byte_offset, "header": error.header}


def message_as_json(message: lh.Headers | lh.Message) -> dict[str, Any]:
    fields = message._asdict() if isinstance(message, lh.Message) else {"headers": message}
    result = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    if fields["headers"] is not None:
        result["headers"] = [header_as_json(header) for header in fields["headers"]]
    return result


def header_as_json(header: lh.Header) -> dict[str, Any]:
    key, value = header
    result: dict[str, Any] = {"key": key}
    if isinstance(key, lh.Value):
        result = {"key": key.bits.hex(), "key_kind": key.type.replace("type-", "kind-")}
    if isinstance(value, lh.Value):
        return {**result, "kind": value.type.replace("type-", "kind-"), "value": value.bits.hex()}
    return {**result, "value": None if value is None else value.hex()}


def message_from_json(message: dict[str, Any]) -> Any:
    fields = {n: bytes.fromhex(v) if n in BYTES and v is not None else v for n, v in message.items()}
    if fields["headers"] is not None:
        fields["headers"] = lh.Headers([header_from_json(header) for header in fields["headers"]])
    return lh.Message(**fields) if len(fields) > 1 else fields["headers"]


def header_from_json(header: dict[str, Any]) -> tuple[Any, Any]:
    key, type_name, value = header["key"], header.get("kind"), header["value"]
    if header.get("key_kind"):
        key = value_from_message(header["key_kind"].replace("kind-", "type-"), bytes.fromhex(key))
    if value is None:
        return key, None
    return key, value_from_message(
        type_name.replace("kind-", "type-"), bytes.fromhex(value)
    ) if type_name else bytes.fromhex(value)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
