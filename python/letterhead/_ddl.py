"""Parse columns in the DDL of Spark SQL, as ``StructType.toDDL()`` writes it: :func:`parse_ddl`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from letterhead._names import shorten

__all__ = ["DdlColumn", "parse_ddl"]


class DdlColumn(NamedTuple):
    """A column: its name, its type as written, and whether it is ``NOT NULL``."""

    name: str
    type: str
    required: bool


class _Token(NamedTuple):
    text: str
    start: int
    kind: str


# Possessive repetitions, and a stop at the first invalid token, keep the time proportional to the length of the text.
_TOKEN = re.compile(
    r"(?P<space>\s++)|(?P<quoted>`(?:[^`]|``)*+`)|(?P<string>'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\")"
    r"|(?P<mark>[<>(),:])|(?P<word>[^\s<>(),:`'\"]++)",
    re.DOTALL,
)

_CLOSING = {"<": ">", "(": ")"}

_EXAMPLE = "'tenant string not null, `content-type` string, route array<string>'"


def parse_ddl(ddl: str) -> list[DdlColumn]:
    """Return the columns of a DDL string: names (in backticks or not), types, ``NOT NULL``; comments are ignored.

    Examples
    --------
    >>> parse_ddl("tenant string NOT NULL, `content-type` string")
    [DdlColumn(name='tenant', type='string', required=True), DdlColumn(name='content-type', type='string', required=False)]
    """
    columns: list[DdlColumn] = []
    parts: list[_Token] = []
    for token in [*_tokens(ddl), _Token(",", len(ddl), "comma")]:
        if token.kind != "comma":
            parts.append(token)
            continue
        columns.append(_column(ddl, parts, token.start))
        parts = []
    return columns


def _tokens(ddl: str) -> Iterator[_Token]:
    """Yield the tokens; the token type is ``comma`` for commas between columns, and ``mark`` for commas in brackets."""
    position = 0
    closing: list[str] = []
    while position < len(ddl):
        match = _TOKEN.match(ddl, position)
        if match is None:
            _refuse(ddl, position, "it has no end" if ddl[position] in "`'\"" else "no column has it")
        text, kind = match[0], match.lastgroup or ""
        if text in _CLOSING:
            closing.append(_CLOSING[text])
        elif text in (">", ")") and (not closing or closing.pop() != text):
            _refuse(ddl, position, "it closes nothing")
        if kind == "mark" and text == "," and not closing:
            kind = "comma"
        yield _Token(text, position, kind)
        position = match.end()
    if closing:
        _refuse(ddl, position, f"'{closing[-1]}' is missing")


def _column(ddl: str, parts: list[_Token], end: int) -> DdlColumn:
    tokens = [token for token in parts if token.kind != "space"]
    if not tokens:
        _refuse(ddl, end, "a column is missing")
    name, *rest = tokens
    if name.kind not in ("word", "quoted") or name.text == "``":
        _refuse(ddl, name.start, "a name is a word, or in backticks")
    if rest and rest[0].text == ":":
        rest = rest[1:]
    rest, required = _without_options(ddl, rest)
    if not rest or rest[0].kind != "word":
        _refuse(ddl, rest[0].start if rest else end, f"column {shorten(_name(name))} has no type")
    last = rest[-1]
    return DdlColumn(_name(name), ddl[rest[0].start : last.start + len(last.text)], required)


def _without_options(ddl: str, tokens: list[_Token]) -> tuple[list[_Token], bool]:
    """Return the tokens of a type, and whether ``NOT NULL`` follows it; a comment is dropped."""
    words = [token.text.lower() if token.kind == "word" else "" for token in tokens]
    if len(tokens) > 2 and words[-2] == "comment" and tokens[-1].kind == "string":
        tokens, words = tokens[:-2], words[:-2]
    for index, token in enumerate(tokens):
        if token.kind in ("string", "quoted"):
            _refuse(ddl, token.start, "a type has no quotes")
        if words[index] in ("default", "generated", "comment") and index:
            _refuse(
                ddl,
                token.start,
                "lh.field(..., default=...) has a default; only NOT NULL and COMMENT may follow a type",
            )
    required = len(tokens) > 2 and words[-2:] == ["not", "null"]
    return (tokens[:-2] if required else tokens), required


def _name(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _refuse(ddl: str, position: int, reason: str) -> NoReturn:
    where = (
        f"at character {position}, {shorten(ddl[position : position + 40])}" if position < len(ddl) else "at the end"
    )
    raise ValueError(f"columns are not DDL such as {_EXAMPLE}: {where}: {reason}")
