"""Options shared by commands, and groups of them that a command receives as one object (:func:`group_options`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from letterhead.cli.completion import complete_formats, complete_targets
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.formats import COMMON, ReadArguments, row_of
from letterhead.cli.message_input import MessageInput
from letterhead.cli.row_options import ERROR_COLUMN, RowOptions
from letterhead.limits import Limits, parse_limits

T = TypeVar("T")


def group_options(**groups: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Pass several options to a command as one object, which a function builds.

    typer reads the options of a command from its signature, without support for groups. So the parameters of each
    function replace the group's parameter in the signature, and a call builds the objects. If the command has no such
    parameter, the options follow its own, and the function is called for its side effect.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        members = {name: _parameters(function) for name, function in groups.items()}
        own = _parameters(command)

        @functools.wraps(command)
        def run(**arguments: Any) -> T:
            for name, function in groups.items():
                value = function(**{member: arguments.pop(member) for member in members[name] if member in arguments})
                if name in own:
                    arguments[name] = value
            return command(**arguments)

        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in own.items():
            parameters |= members.get(name, {name: parameter})
        for name in members:
            if name not in own:
                parameters |= members[name]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters.values()]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        return run

    return decorate


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function, eval_str=True).parameters


def option(names: str, text: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an option with a value; its names are separated by spaces."""
    return typer.Option(*names.split(), help=text, metavar=metavar, **settings)


def flag(names: str, text: str) -> Any:
    """Return an option without a value; its names are separated by spaces."""
    return option(names, text, "")


Errors = StrEnum("Errors", {"raise_": "raise", "null": "null", "column": "column"})
OnLoss = StrEnum("OnLoss", {"raise_": "raise", "drop": "drop", "report": "report"})
EncodeOnLoss = StrEnum("EncodeOnLoss", {"raise_": "raise", "drop": "drop"})
AsText = StrEnum("AsText", {"hex": "hex", "base64": "base64"})
TYPE_WORDS = ("be", "le", "text", "binary")

_ALL = "(`letterhead formats` lists all)"
_READABLE = ", ".join(COMMON)
_WRITABLE = ", ".join(name for name in COMMON if row_of(name).is_target)

File = Annotated[
    str | None,
    typer.Argument(metavar="FILE|-", help="Raw bytes; - is standard input. With --column a SOURCE, as for `read`."),
]
Format = Annotated[
    str,
    option(
        "--format -f",
        f"{_READABLE}, … {_ALL}; auto: the format that fits, if only one does.",
        "FORMAT",
        autocompletion=complete_formats,
    ),
]
Written = Annotated[str, option("--format -f", f"{_WRITABLE}, … {_ALL}.", "FORMAT", autocompletion=complete_targets)]
Target = Annotated[str, option("--to -t", f"{_WRITABLE}, … {_ALL}.", "TARGET", autocompletion=complete_targets)]
Hex = Annotated[str | None, option("--hex", "The bytes as hex; - reads standard input.", "TEXT")]
Base64 = Annotated[str | None, option("--base64", "The bytes as base64; - reads standard input.", "TEXT")]
Column = Annotated[
    str | None,
    option("--column -c", "Read this column of a source, of bytes (decode and convert: or of headers).", "NAME"),
]
Json = Annotated[bool, flag("--json", "Print JSON.")]
EpochMs = Annotated[bool, flag("--epoch-ms", "Print times as milliseconds since 1970, not as ISO 8601.")]
Everything = Annotated[bool, flag("--all", "Do not shorten long values, and show every message.")]
TypesOption = Annotated[
    list[str] | None,
    option(
        "--types",
        "For formats without types: be, le or text, to write values big-endian, little-endian or as text. For formats "
        "with types: binary for untyped values, or the type of a key, as in retry=int32, at=int64:le or n=int32:text; "
        "repeat it for other keys, and for further headers of the same key, in order.",
        "WORD|KEY=TYPE",
    ),
]
WrittenAs = Annotated[
    AsText | None, option("--as", "Write text instead of bytes, a line for each record: hex or base64.")
]
Canonical = Annotated[bool, flag("--canonical", "For iggy: sort the headers like Iggy's own map.")]
Where = Annotated[
    str | None,
    option("--where", "Only rows for which this SQL is true, as in \"tenant = 'acme' and retry::int > 2\".", "SQL"),
]
OnErrors = Annotated[
    Errors, option("--errors", "For data that cannot be decoded: stop, make it null, or report it in a column.")
]
ErrorColumn = Annotated[str, option("--error-column", "With --errors column: the name of that column.", "NAME")]


def limits(
    limits: Annotated[
        str | None,
        option(
            "--limits",
            "Set limits, as in headers=1000,records=5; also "
            f"{', '.join(name for name in Limits._fields if name not in ('headers', 'records'))}.",
            "NAME=N,...",
        ),
    ] = None,
) -> Limits:
    """Return the limits of a command; unset ones come from the environment."""
    with usage_errors():
        return (Limits() if limits is None else parse_limits(limits)).filled()


@group_options(limits=limits)
def reading(
    *,
    lenient: Annotated[
        bool, flag("--lenient", "Accept what Kafka's Java deserializers accept, even if data is lost.")
    ] = False,
    strict_types: Annotated[
        bool,
        flag(
            "--strict-types",
            "Reject types of iggy that have no name yet (codes 16 to 255), and values of another type than requested.",
        ),
    ] = False,
    limits: Limits,
) -> ReadArguments:
    """Return the options of reading."""
    return {"lenient": lenient, "strict_types": strict_types, "limits": limits}


def source(file: File = None, hex_text: Hex = None, base64: Base64 = None, column: Column = None) -> MessageInput:
    """Return the source named by the arguments."""
    return MessageInput(file, hex_text, base64, column)


def rows(
    json: Json = False,
    errors: OnErrors = Errors.raise_,
    error_column: ErrorColumn = ERROR_COLUMN,
    limit: Annotated[
        int | None, option("--limit -n", "With --column: only the first N rows (20 on a terminal).", "N", min=0)
    ] = None,
    out: Annotated[
        Path | None,
        option("--out -o", "With --column: write Parquet. Converting one message: write its bytes.", "FILE"),
    ] = None,
    everything: Everything = False,
    epoch_ms: EpochMs = False,
) -> RowOptions:
    """Return the options for processing and printing a column."""
    return RowOptions(errors.value, error_column, limit, out, json, everything, epoch_ms)


def types_option(types: TypesOption = None) -> Any:
    """Return the argument `types=`: a name, or a type for each key.

    Keys are written as in errors and losses. A key that occurs several times has a type for each of its headers.
    """
    if not types:
        return None
    if len(types) == 1 and types[0] in TYPE_WORDS:
        return types[0]
    by_key: dict[str, list[str]] = {}
    for pair in types:
        key, equals, name = pair.rpartition("=")
        if not equals:
            if pair in TYPE_WORDS:
                raise Failure(f"--types {pair} is for all values: give no other --types")
            raise Failure(f"--types: {pair!r} is neither {', '.join(TYPE_WORDS)} nor KEY=TYPE, as in retry=int32")
        by_key.setdefault(key, []).append(name)
    return {key: key_types[0] if len(key_types) == 1 else key_types for key, key_types in by_key.items()}
