"""What the options of the data sources say: Spark hands them over as text, by names without regard to case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from letterhead.errors import unknown_name
from letterhead.fields import Columns, field
from letterhead.limits import Limits

__all__ = ["LIMITS", "check_options", "header_columns", "integer", "limits", "names"]

LIMITS = {
    "maxMessageBytes": "message_bytes",
    "maxHeaders": "headers",
    "maxDecompressedBytes": "decompressed_bytes",
    "maxRecords": "records",
    "maxOutputBytes": "output_bytes",
}
"""The options that set a limit, and the limit that each of them sets."""


def check_options(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse options that a source does not have.

    Parameters
    ----------
    options : mapping of str to str
        The options.
    known : iterable of str
        Names of those that there are.

    Raises
    ------
    ValueError
        If there is another: a misspelt one would be passed over.
    """
    known = list(known)
    lower = {name.lower() for name in known}
    for name in options:
        if name.lower() not in lower:
            raise unknown_name("option", name, known)


def names(options: Mapping[str, str], option: str = "columns") -> list[str] | None:
    """Read a JSON list of names.

    Examples
    --------
    >>> names({"columns": '["key", "value"]'})
    ['key', 'value']
    """
    if option not in options:
        return None
    given = _json(options, option, "a list of names", '["key", "value"]')
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise _wrong(options, option, "a list of names", '["key", "value"]')
    return given


def header_columns(options: Mapping[str, str], option: str = "headerColumns") -> Columns | None:
    """Read a JSON object of output columns: to a type, or to an object with ``type``, ``key``, ``repeat``, ``required``.

    Examples
    --------
    >>> header_columns({"headerColumns": '{"tenant": "string", "event": {"type": "string", "key": "ce_type"}}'})
    {'tenant': 'string', 'event': Field(type='string', key='ce_type', repeat='last', required=False)}
    """
    if option not in options:
        return None
    example = '{"tenant": "string", "event": {"type": "string", "key": "ce_type"}}'
    given = _json(options, option, "an object of columns", example)
    if not isinstance(given, dict) or not all(isinstance(type, str | dict) for type in given.values()):
        raise _wrong(options, option, "an object of columns", example)
    return {name: type if isinstance(type, str) else _field(option, name, type) for name, type in given.items()}


def integer(options: Mapping[str, str], option: str) -> int | None:
    """Read a whole number."""
    if option not in options:
        return None
    try:
        return int(options[option])
    except ValueError:
        raise ValueError(f"option {option} is {options[option]!r}, and a whole number is meant") from None


def limits(options: Mapping[str, str]) -> Limits | None:
    """Read the limits; an unset one is that of each worker.

    Examples
    --------
    >>> limits({"maxHeaders": "100"}).headers
    100
    """
    given = {name: integer(options, option) for option, name in LIMITS.items() if option in options}
    for option, name in LIMITS.items():
        if (given.get(name) or 0) < 0:
            raise ValueError(f"option {option} is {given[name]}, and a limit is a number from 0 on")
    return Limits(**given) if given else None


def _field(option: str, name: str, given: dict[str, Any]) -> Any:
    for said in given:
        if said not in _FIELD:
            raise unknown_name(f"{option} field", said, _FIELD)
    if "type" not in given:
        raise ValueError(f"option {option}: column {name!r} has no type")
    return field(**given)


_FIELD = ("type", "key", "repeat", "required")


def _json(options: Mapping[str, str], option: str, what: str, example: str) -> Any:
    try:
        return json.loads(options[option])
    except json.JSONDecodeError:
        raise _wrong(options, option, what, example) from None


def _wrong(options: Mapping[str, str], option: str, what: str, example: str) -> ValueError:
    return ValueError(f"option {option} is no JSON of {what}, such as {example}: {options[option]!r}")
