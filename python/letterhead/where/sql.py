"""Convert SQL text to conditions, with sqlglot as the parser: :func:`condition_of_sql`."""

from __future__ import annotations

import functools
import math
import re
from datetime import tzinfo
from typing import Any, ClassVar

from letterhead._formatting import printable
from letterhead._optional_dependencies import install_hint
from letterhead._times import is_relative
from letterhead.fields import Field, check_utf8
from letterhead.where.conditions import ANY, DEPTH_HINT, MAX_DEPTH, SWAPPED, Condition, Logic, Operand, col
from letterhead.where.literals import ZonedText

with install_hint("a condition as SQL text", "letterhead[sql]"):
    import sqlglot
    from sqlglot import exp, parser, tokens
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

__all__ = ["condition_of_sql"]


# Keep the names of types as written: int8 has one byte here, but eight bytes in other dialects.
_KEYWORDS: dict[str, Any] = {
    word: token
    for word, token in tokens.Tokenizer.KEYWORDS.items()
    if token not in parser.Parser.TYPE_TOKENS or word == "NULL"
}


_TOKENS: Any = tokens.TokenType  # type: ignore[attr-defined]

# Token for PRESENT, not otherwise used in conditions. PRESENT remains valid as a name.
_PRESENT = _TOKENS.DICTIONARY


class _Where(Dialect):
    class Tokenizer(tokens.Tokenizer):
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012
        KEYWORDS = {**_KEYWORDS, "~": _TOKENS.RLIKE, "PRESENT": _PRESENT}  # noqa: RUF012

    class Parser(parser.Parser):
        ID_VAR_TOKENS = parser.Parser.ID_VAR_TOKENS | {_PRESENT}
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            **parser.Parser.RANGE_PARSERS,
            _PRESENT: lambda self, this: self.expression(exp.Exists(this=this)),
        }


_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")

_MAX_PART_CHARS = 80
"""Maximum number of characters of SQL text quoted in an error."""

_COMPARISONS = {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}

_THIS = frozenset({"this"})
_PAIR = frozenset({"this", "expression"})
_LIST = frozenset({"this", "expressions"})
_ARGUMENTS: dict[Any, frozenset[str]] = {
    **dict.fromkeys([exp.Not, exp.Paren, exp.Any, exp.All, exp.Neg, exp.HexString, exp.Boolean], _THIS),
    **dict.fromkeys([exp.And, exp.Or, *_COMPARISONS, exp.Is, exp.StartsWith, exp.RegexpILike], _PAIR),
    **dict.fromkeys([exp.In, exp.Bracket, exp.Anonymous], _LIST),
    exp.Between: _THIS | {"low", "high"},
    **dict.fromkeys([exp.Like, exp.ILike], _PAIR | {"negate"}),
    exp.RegexpLike: _PAIR | {"flag"},
    exp.Exists: _THIS,
    exp.Alias: _THIS | {"alias"},
    exp.Cast: _THIS | {"to", "_type"},
    exp.DataType: _THIS | {"kind", "nested"},
    exp.Column: _THIS | {"table"},
    exp.Identifier: _THIS | {"quoted"},
    exp.Literal: _THIS | {"is_string"},
    exp.Null: frozenset(),
}
"""Supported arguments of each expression; other arguments would change its meaning and are rejected.

A table name of a column is rejected later, with an error that contains the remedy."""


def condition_of_sql(text: str, timezone: tzinfo | None = None) -> Condition:
    """Convert SQL text to a condition; :func:`letterhead.where.parse` documents the syntax."""
    check_utf8("where: the text", text)
    if "`" in _TEXT.sub("", text):
        names = "\"content-type\", or headers['content-type']"
        raise ValueError(f"where: write names in double quotes, not in backticks: {names}")
    try:
        _check_depth(text)
        parsed = sqlglot.parse(text, dialect=_Where)
        if len(parsed) != 1 or parsed[0] is None:
            raise ValueError("where: one expression is needed, such as tenant = 'acme'")
        return _SqlTranslator(text, timezone).condition(parsed[0])
    except RecursionError:
        raise ValueError(f"where: the text is nested too deeply: {DEPTH_HINT}") from None
    except SqlglotError as error:
        details: dict[str, Any] = next(iter(getattr(error, "errors", ())), {})
        highlighted = f" at {details['highlight']!r}" if details.get("highlight") else ""
        reason = (details.get("description") or str(error)).partition(" for <")[0]
        position = f", line {details['line']}, column {details['col']}" if details.get("line") else ""
        raise ValueError(
            f"where: the text is not a SQL expression{highlighted}{position}: {reason[:1].lower()}{reason[1:]}"
        ) from None


def _check_depth(text: str) -> None:
    """Reject deeply nested text before the parser recurses into it."""
    # Number of prefixes, such as NOT, after each open parenthesis.
    prefixes = [0]
    for token in _Where().tokenize(text):
        if token.token_type in (_TOKENS.L_PAREN, _TOKENS.L_BRACKET):
            prefixes.append(0)
        elif token.token_type in (_TOKENS.R_PAREN, _TOKENS.R_BRACKET):
            del prefixes[max(1, len(prefixes) - 1) :]
        elif token.token_type in (_TOKENS.NOT, _TOKENS.DASH):
            prefixes[-1] += 1
        else:
            prefixes[-1] = 0
        if len(prefixes) - 1 + sum(prefixes) > MAX_DEPTH:
            position = f"line {token.line}, column {token.col}"
            raise ValueError(f"where: {token.text} ({position}) is nested too deeply: {DEPTH_HINT}")


class _SqlTranslator:
    """Translator from SQL expressions to conditions."""

    def __init__(self, text: str, timezone: tzinfo | None) -> None:
        self._text = text
        self._timezone = timezone

    def condition(self, node: Any) -> Condition:
        """Translate an expression to a condition."""
        self._check(node)
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case exp.And() | exp.Or():
                name: Any = "and" if isinstance(node, exp.And) else "or"
                return functools.reduce(
                    lambda left, right: Logic(name, left, right), map(self.condition, self._chain(node))
                )
            case exp.Not():
                return ~self.condition(node.this)
            case exp.In():
                return self._operand(node.this).isin([self._literal(literal) for literal in node.expressions])
            case exp.Between():
                operand = self._operand(node.this)
                low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
                return operand._compared(">=", low) & operand._compared("<=", high)
            case exp.Is(expression=exp.Null()):
                return self._nullable(node.this).is_null()
            case exp.Is(expression=exp.Column()) if _is_present(node.expression):
                return self._nullable(node.this).exists()
            case exp.Exists():
                return self._nullable(node.this).exists()
            case exp.Like() | exp.ILike():
                condition = self._like(node)
                return ~condition if node.args.get("negate") else condition
            case exp.RegexpLike() | exp.RegexpILike():
                flag = node.args.get("flag")
                if flag is not None and self._literal(flag) != "i":
                    raise self._error(node, "the only flag is 'i', which ignores case")
                ignores_case = flag is not None or isinstance(node, exp.RegexpILike)
                return self._operand(node.this).matches(self._string(node.expression), ignore_case=ignores_case)
            case exp.Alias() if is_relative(f"-1{node.alias.lower()}"):
                raise self._error(node, "write a time before now in single quotes, as in timestamp > '-1h'")
            case exp.Alias() if node.alias.lower() == "exists":
                raise self._error(node, f"write {node.this.sql(dialect=_Where)} IS PRESENT")
            case exp.StartsWith():
                return self._operand(node.this).starts_with(self._literal(node.expression))
            case _ if type(node) in _COMPARISONS:
                return self._comparison(node)
            case exp.Column():
                name = node.sql(dialect=_Where)
                raise self._error(
                    node,
                    f"it is not a condition: compare a column, as in {name} = true, or a header, as in {name}::bool = true",
                )
            case exp.Cast():
                raise self._error(node, f"it is not a condition: compare it, as in {node.sql(dialect=_Where)} = true")
        raise self._error(node, "it is not supported")

    def _chain(self, node: Any) -> list[Any]:
        """Return the parts of a chain of AND or OR iteratively, because chains can exceed Python's recursion limit."""
        parts = []
        while type(node.this) is type(node):
            parts.append(node.expression)
            node = node.this
            self._check(node)
        return [node.this, node.expression, *reversed(parts)]

    def _comparison(self, node: Any) -> Condition:
        name, left, right = _COMPARISONS[type(node)], node.this, node.expression
        if _is_literal(left) and not _is_literal(right):
            name, left, right = SWAPPED[name], right, left
        if isinstance(right, exp.Null):
            raise self._error(node, "a comparison with NULL is never true: write IS NULL")
        if isinstance(right, exp.Column) and right.this.args.get("quoted"):
            raise self._error(right, f"write text in single quotes: '{right.name}'; double quotes are for names")
        if isinstance(right, exp.Parameter):
            raise self._error(right, f"write milliseconds since 1970 as a number: {right.this.sql(dialect=_Where)}")
        if not _is_literal(right):
            raise self._error(
                right, f"only comparisons of a column with a literal are supported{self._advice(left, right)}"
            )
        return self._operand(left)._compared(name, self._literal(right))

    def _advice(self, left: Any, right: Any) -> str:
        """Return advice for rewriting a comparison with an unsupported operand, or empty text."""
        if isinstance(right, exp.Column):
            return f": write text in single quotes: '{right.name}'"
        if isinstance(right, exp.Sub) and all(isinstance(part, exp.Literal) for part in right.flatten()):
            text = "-".join(part.this for part in right.flatten())
            time = f", or '{text}T00:00:00Z'" if self._timezone is None else ""
            return f": write a date or time in single quotes: '{text}'{time}"
        if isinstance(right, exp.Any | exp.All) and _is_literal(right.this.unnest()):
            literal, column = right.this.unnest().sql(dialect=_Where), left.sql(dialect=_Where)
            return f": ANY and ALL take the column: {literal} = {right.key.upper()}({column})"
        return ""

    def _operand(self, node: Any) -> Operand:
        if isinstance(node, exp.Sub) and all(isinstance(part, exp.Column) for part in node.flatten()):
            name = "-".join(part.name for part in node.flatten())
            raise self._error(node, f"write a name with a hyphen in double quotes, \"{name}\", or as headers['{name}']")
        self._check(node)
        match node:
            case exp.Paren():
                return self._operand(node.this)
            case exp.Any() | exp.All():
                operand = self._operand(node.this)
                return operand.any() if isinstance(node, exp.Any) else operand.all()
            case exp.Anonymous(expressions=[argument]) if str(node.this).lower() == "all":
                return self._operand(argument).all()
            case exp.Cast():
                return self._typed(node)
            case exp.Column() if node.args.get("table") is None:
                return col(node.name)
            case exp.Bracket():
                return self._typed_header(node, None)
            case exp.Column():
                raise self._error(node, f'write a name with a dot in double quotes: "{node.sql()}"')
        raise self._error(node, "a column is needed")

    def _typed(self, node: Any) -> Operand:
        self._check(node.to)
        type = node.to.args.get("kind")
        if not type:
            raise self._error(node, f"{node.to.sql()} is not a type of one value")
        type = type if isinstance(type, str) else type.name
        inner = node.this
        try:
            if isinstance(inner, exp.Bracket):
                self._check(inner)
                return self._typed_header(inner, type)
            if isinstance(inner, exp.Column) and inner.args.get("table") is None:
                return col(inner.name, type)
        except ValueError as error:
            raise self._error(node, str(error)) from None
        raise self._error(inner, "only a header has a type")

    def _typed_header(self, node: Any, type: str | None) -> Operand:
        (key, *others) = node.expressions
        is_header = isinstance(node.this, exp.Column) and node.this.sql() == "headers"
        if not is_header or others or not isinstance(key, exp.Literal) or not key.is_string:
            raise self._error(node, "write a header as headers['key']")
        # A key with a type is a header, even if it is the name of a field.
        return col(key.this, type or "string")

    def _literal(self, node: Any) -> Any:
        self._check(node)
        match node:
            case exp.Paren():
                return self._literal(node.this)
            case exp.Literal() if node.is_string:
                if self._timezone is None:
                    return node.this
                text = ZonedText(node.this)
                text.zone = self._timezone
                return text
            case exp.Literal():
                return self._number(node)
            case exp.Neg(this=exp.Literal(is_string=False)):
                return -self._literal(node.this)
            case exp.HexString():
                try:
                    return bytes.fromhex(node.this)
                except ValueError:
                    raise self._error(node, "hex digits come in pairs") from None
            case exp.Boolean():
                return bool(node.this)
        raise self._error(node, "a literal is needed: text, a number, x'ff00', true or false")

    def _number(self, node: Any) -> int | float:
        try:
            number = int(node.this) if node.this.isdecimal() else float(node.this)
        except ValueError:
            raise self._error(node, "the number has too many digits") from None
        if math.isinf(number) if isinstance(number, float) else number.bit_length() > 1024:
            raise self._error(node, "the number is too large for 128 bits and for a double")
        return number

    def _nullable(self, node: Any) -> Operand:
        """Return an operand that is tested only for null; its header needs no type."""
        if isinstance(node, exp.Bracket):
            header = self._typed_header(node, None)
            return Operand(header._name, Field(ANY))
        return self._operand(node)

    def _like(self, node: Any) -> Condition:
        """Translate LIKE, or ILIKE, which ignores case: % matches any text, and _ matches one character."""
        like, operand = self._string(node.expression), self._operand(node.this)
        if isinstance(node, exp.Like) and like.endswith("%"):
            is_part = like.startswith("%") and len(like) > 1
            text = like[is_part:-1]
            if not set("%_\\") & set(text):
                return operand.contains(text) if is_part else operand.starts_with(text)
        if like.endswith("\\") and not like.endswith("\\\\"):
            raise self._error(node, "the pattern ends in an escape character")
        parts = (_LIKE.get(part) or re.escape(part[-1]) for part in re.findall(r"\\.|.", like, re.DOTALL))
        return operand.matches(f"(?s)^{''.join(parts)}$", ignore_case=isinstance(node, exp.ILike))

    def _string(self, node: Any) -> str:
        text = self._literal(node)
        if not isinstance(text, str):
            raise self._error(node, "text is needed")
        return text

    def _check(self, node: Any) -> None:
        """Reject unsupported arguments of an expression."""
        known = _ARGUMENTS.get(type(node))
        if known is None:
            hint = ": to ignore case, write ILIKE" if isinstance(node, exp.Lower | exp.Upper) else ""
            raise self._error(node, f"it is not supported{hint}")
        for name, value in node.args.items():
            if name not in known and value not in (None, False, []):
                raise self._error(node, f"{name.replace('_', ' ')} is not supported")

    def _error(self, node: Any, reason: str) -> ValueError:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        start = min(starts, default=0)
        before = self._text[:start]
        line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
        part = printable(node.sql(dialect=_Where))
        part = part if len(part) <= _MAX_PART_CHARS else f"{part[:_MAX_PART_CHARS]}…"
        return ValueError(f"where: {part} (line {line}, column {column}): {reason}")


_LIKE = {"%": ".*", "_": "."}


def _is_present(node: Any) -> bool:
    return not node.this.args.get("quoted") and node.args.get("table") is None and node.name.lower() == "present"


def _is_literal(node: Any) -> bool:
    return isinstance(node, exp.Literal | exp.Neg | exp.HexString | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Paren) and _is_literal(node.this)
    )
