"""Options of the data sources: :func:`options` writes them, :func:`parse_options` parses them by a table per source.

Spark passes options as text, and ignores the case of their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from letterhead._default_values import json_default
from letterhead._header_text import columns_from_text
from letterhead._names import check_name, unknown_name
from letterhead._row_request import RowRequest, columns_asked
from letterhead._strict_json import parse_json
from letterhead._times import check_unit
from letterhead.fields import Columns, ColumnSpec, columns_of, field, normalise
from letterhead.limits import Limits, parse_limits
from letterhead.spark.schemas import check_case
from letterhead.where.conditions import Condition
from letterhead.where.parsing import parse as parse_condition

__all__ = [
    "COMMON",
    "Option",
    "flag",
    "json_of",
    "number",
    "number_list",
    "one_of",
    "options",
    "parse_options",
    "path",
    "request_from_options",
    "text",
    "timestamp",
]

Parser: TypeAlias = Callable[[str, str], Any]
"""Converts the text of an option, or raises ``ValueError``; called with its name and the text."""


class Option(NamedTuple):
    """Option of a data source: the parser of its text, and its documentation."""

    parse: Parser
    doc: str


def options(
    *, columns: Sequence[str] | None = None, headers: Columns | None = None, limits: Limits | None = None
) -> dict[str, str]:
    """Write columns, headers and limits as options of letterhead's data sources.

    Spark does not tell a data source which columns a query needs. The source builds only the columns requested here.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of the data source, in order.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits of each worker, see :class:`letterhead.Limits`.

    Returns
    -------
    dict of str to str
        For ``spark.read.format(...).options(**...)``.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, or a name is misspelt.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.options(columns=["offset"], headers={"tenant": "string"})
    {'columns': '["offset"]', 'headers': '{"tenant": {"type": "string"}}'}
    """
    written = {}
    names = columns_asked(columns, headers)
    if names is not None:
        written["columns"] = json.dumps(names)
    check_case([*(names or ()), *columns_of(headers or {})])
    if headers is not None:
        written["headers"] = json.dumps({spec.name: _field_as_json(spec) for spec in normalise(headers, sql=True)})
    if limits is not None and any(limit is not None for limit in limits):
        written["limits"] = ",".join(f"{name}={limit}" for name, limit in limits._asdict().items() if limit is not None)
    return written


def _field_as_json(spec: ColumnSpec) -> dict[str, Any]:
    if not isinstance(spec.key, str):
        raise TypeError(f"column {spec.name!r}: a key must be str here, not {spec.key.__class__.__name__}")
    defaults = {"key": spec.name, "repeat": "last", "required": False, "default": None, "split": None}
    parts: dict[str, Any] = {"type": spec.type, **spec._asdict()}
    del parts["name"]
    if spec.default is not None:
        parts["default"] = json_default(spec.default)
    return {part: value for part, value in parts.items() if part not in defaults or value != defaults[part]}


def parse_options(options: Mapping[str, str], table: Mapping[str, Option]) -> dict[str, Any]:
    """Return the values of options by their names in the table; raise ``ValueError`` for unknown names and bad values.

    Examples
    --------
    >>> headers = '{"tenant": "string", "event": {"type": "string", "key": "ce_type"}}'
    >>> values = parse_options({"columns": '["key", "value"]', "HEADERS": headers}, COMMON)
    >>> values["columns"]
    ['key', 'value']
    >>> values["headers"]
    {'tenant': 'string', 'event': Field(type='string', key='ce_type')}
    """
    names = {name.lower(): name for name in table}
    values = {}
    for name, value_text in options.items():
        known = names.get(name.lower())
        if known is None:
            raise unknown_name("option", name, table)
        values[known] = table[known].parse(known, value_text)
    return values


def request_from_options(values: Mapping[str, Any]) -> RowRequest:
    """Return the request for the values of options that all sources share.

    Examples
    --------
    >>> request = request_from_options({"errors": "column", "errorColumn": "problem", "columns": ["key"]})
    >>> request.columns, request.errors, request.error_column
    (('key',), 'column', 'problem')
    """
    fields = {"errors": "errors", "errorColumn": "error_column", "where": "where", "limits": "limits"}
    fields |= {"headers": "headers"}
    return RowRequest(
        columns=columns_asked(values.get("columns"), values.get("headers")),
        **{field: values[option] for option, field in fields.items() if option in values},
    )


# Parsers --------------------------------------------------------------------------------------------------------------


def text(name: str, value_text: str) -> str:
    """Accept any text."""
    return value_text


def path(name: str, value_text: str) -> str:
    """Accept a path, or a URI of a local file."""
    return value_text.removeprefix("file:")


def flag(name: str, value_text: str) -> bool:
    """Parse true or false."""
    if value_text.lower() not in ("true", "false"):
        raise ValueError(f"option {name} must be true or false, not {value_text!r}")
    return value_text.lower() == "true"


def number(least: int | None = None) -> Parser:
    """Return a parser of integers, optionally with a minimum."""

    def parse(name: str, value_text: str) -> int:
        try:
            value = int(value_text)
        except ValueError:
            raise ValueError(f"option {name} must be a whole number, not {value_text!r}") from None
        if least is not None and value < least:
            raise ValueError(f"option {name} must be at least {least}, not {value}")
        return value

    return parse


def one_of(*names: str) -> Parser:
    """Return a parser of a closed list of names."""

    def parse(name: str, value_text: str) -> str:
        check_name(f"{name} value", value_text, names)
        return value_text

    return parse


def timestamp(name: str, value_text: str) -> int:
    """Parse milliseconds since 1970; reject numbers that are probably seconds or microseconds."""
    try:
        value = int(value_text)
    except ValueError:
        raise ValueError(f"option {name} must be milliseconds since 1970, not {value_text!r}") from None
    if value < 0:
        raise ValueError(f"option {name} must be at least 0, not {value}")
    check_unit(f"option {name}", value)
    return value


def json_of(expected: str, container: type, *elements: type) -> Parser:
    """Return a parser of a JSON list or object with elements of given types; ``expected`` describes it in errors."""

    def parse(name: str, value_text: str) -> Any:
        try:
            value = parse_json(value_text)
        except ValueError:
            value = None
        items = value.values() if isinstance(value, dict) else value
        # The exact type, because true is an instance of int.
        if not isinstance(value, container) or not all(type(element) in elements for element in items):
            raise ValueError(f"option {name} must be {expected}, not {value_text!r}")
        return value

    return parse


def _limits(name: str, value_text: str) -> Limits:
    try:
        return parse_limits(value_text)
    except ValueError as error:
        raise ValueError(f"option {name}: {error}") from None


def _where(name: str, value_text: str) -> Condition:
    try:
        return parse_condition(value_text)
    except ValueError as error:
        raise ValueError(f"option {error}") from None


def number_list(name: str, value_text: str) -> list[int]:
    """Parse whole numbers between commas, or a JSON list of them."""
    is_json = value_text.lstrip().startswith("[")
    try:
        numbers = parse_json(value_text if is_json else f"[{value_text}]")
    except ValueError:
        numbers = None
    if not numbers or any(type(number) is not int for number in numbers):
        raise ValueError(
            f'option {name} must be numbers such as "0,2", or a JSON list such as [0, 2], not {value_text!r}'
        )
    return numbers  # type: ignore[no-any-return]


_columns = json_of(
    'a JSON object of columns such as {"tenant": "string", "event": {"type": "string", "key": "ce_type"}}',
    dict,
    str,
    dict,
)


def _header_columns(option: str, value_text: str) -> dict[str, Any]:
    if not value_text.lstrip().startswith(("{", "[")):
        return columns_from_text(f"option {option}", value_text)
    columns = _columns(option, value_text)
    for name, spec in columns.items():
        if isinstance(spec, str):
            continue
        for part in spec:
            check_name(f"{option} field", part, _FIELD)
        if "type" not in spec:
            raise ValueError(f'option {option}: column {name!r} has no type: add one such as "type": "string"')
        columns[name] = field(**spec)
    return columns  # type: ignore[no-any-return]


_json_names = json_of('names such as "key,value", or a JSON list such as ["key", "value"]', list, str)


def _column_names(name: str, value_text: str) -> list[str]:
    if value_text.lstrip().startswith("["):
        return _json_names(name, value_text)  # type: ignore[no-any-return]
    return [column.strip() for column in value_text.split(",") if column.strip()]


_FIELD = ("type", "key", "repeat", "required", "default", "split")

# Tables ---------------------------------------------------------------------------------------------------------------

COMMON = {
    "columns": Option(
        _column_names,
        "Columns in order, as in `offset,value`, or a JSON list. Spark does not tell a source which ones a query needs.",
    ),
    "headers": Option(
        _header_columns,
        "Headers as typed columns, as in `tenant,retry:int32,id=header-id:uuid`; or a JSON object: output column to a type, or to "
        "an object with `type` and optionally `key`, `repeat`, `required`, `default` and `split`.",
    ),
    "where": Option(
        _where,
        "Only rows for which this SQL is true, as in `tenant = 'acme' and retry::int > 2`. It needs `letterhead[sql]` on the "
        "driver.",
    ),
    "errors": Option(one_of("raise", "null", "column"), "What to do with an error in a row, as in `decode_headers`."),
    "errorColumn": Option(text, "Name of the column of `errors=column`; `error` by default."),
    "limits": Option(
        _limits, "Limits of `letterhead.Limits`, as in `headers=1000,records=5`; by default the limits of each worker."
    ),
}
"""Options of all data sources."""
