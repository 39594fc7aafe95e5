"""The adapter of letterhead itself: answers the runner's requests with the native module."""

from __future__ import annotations

import json
import sys
from typing import Any

import letterhead as lh
from letterhead.errors import HeaderError
from letterhead.values import of_message

BYTES = ("id", "key", "value", "payload")
NUMBERS = ("varint", "unsigned-varint", "varlong", "unsigned-varlong")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    verb, format = request.pop("verb"), request.pop("format")
    if "strict_kinds" in request:  # the vectors say kind where this package says type
        request["strict_types"] = request.pop("strict_kinds")
    if format in NUMBERS:
        return {"unsupported": True}  # Python sees no number alone
    try:
        if verb == "encode":
            data = lh.encode(given(request.pop("message")), format, **request)
            return {"bytes": None if data is None else data.hex()}
        data = bytes.fromhex(request.pop("bytes"))
        if verb == "decode":
            return {"message": told(lh.decode(data, format, **request))}
        if verb == "messages":
            return {"messages": [told(message) for message in lh.messages(data, format, **request)]}
        if verb == "validate":
            return {"faults": [fault(error) for error in lh.validate(data, format, **request)]}
    except HeaderError as error:
        return {"error": fault(error)}
    except UnicodeEncodeError:
        return {"error": "key_not_utf8"}  # half of a surrogate pair
    return {"unsupported": True}


def fault(error: HeaderError) -> dict[str, Any]:
    return {"code": error.code.replace("type", "kind"), "byte": error.byte_offset, "header": error.header}


def told(message: lh.Headers | lh.Message) -> dict[str, Any]:
    fields = message._asdict() if isinstance(message, lh.Message) else {"headers": message}
    made = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    if fields["headers"] is not None:
        made["headers"] = [header_told(header) for header in fields["headers"]]
    return made


def header_told(header: lh.Header) -> dict[str, Any]:
    key, value = header
    made: dict[str, Any] = {"key": key}
    if isinstance(key, lh.Value):
        made = {"key": key.bits.hex(), "key_kind": key.type.replace("type-", "kind-")}
    if isinstance(value, lh.Value):
        return {**made, "kind": value.type.replace("type-", "kind-"), "value": value.bits.hex()}
    return {**made, "value": None if value is None else value.hex()}


def given(message: dict[str, Any]) -> Any:
    fields = {n: bytes.fromhex(v) if n in BYTES and v is not None else v for n, v in message.items()}
    if fields["headers"] is not None:
        fields["headers"] = lh.Headers([header_given(header) for header in fields["headers"]])
    return lh.Message(**fields) if len(fields) > 1 else fields["headers"]


def header_given(header: dict[str, Any]) -> tuple[Any, Any]:
    key, kind, value = header["key"], header.get("kind"), header["value"]
    if header.get("key_kind"):
        key = of_message(header["key_kind"].replace("kind-", "type-"), bytes.fromhex(key))
    if value is None:
        return key, None
    return key, of_message(kind.replace("kind-", "type-"), bytes.fromhex(value)) if kind else bytes.fromhex(value)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
