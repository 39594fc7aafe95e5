"""Conditions as SQL text, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlglot")

from letterhead import where


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("tenant = 'acme' and retry::int32 > 2", "(col('tenant') == 'acme') & (col('retry', 'int32') > 2)"),
        ("1 < offset", "col('offset') > 1"),
        ("a::int8 = -5 or not (b is null)", "(col('a', 'int8') == -5) | (~(col('b').is_null()))"),
        ('cast(a as "int32:le") <= 1.5', "col('a', 'int32:le') <= 1.5"),
        ("x not in (1, 2)", "~(col('x').isin([1, 2]))"),
        ("'a' = any(route::string)", "col('route', 'string').any() == 'a'"),
        ("all(route) <> 'x'", "col('route').all() != 'x'"),
        ("key = x'ff00'", "col('key') == b'\\xff\\x00'"),
        ("headers['offset'] = 'q'", "col('offset', 'string') == 'q'"),
        ("x between 1 and 2", "(col('x') >= 1) & (col('x') <= 2)"),
        ("x not like 'a%'", "~(col('x').starts_with('a'))"),
        ("\"x-id\" = 'it''s'", "col('x-id') == \"it's\""),
        ("flag::bool = true", "col('flag', 'bool') == True"),
    ],
)
def test_sql_text_parses_to_same_condition_as_operators(text: str, condition: str) -> None:
    assert repr(where.parse(text)) == condition


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a::float64 > 1e400", r"1e400 \(line 1, column 14\): the number is too large for 128 bits and for a double"),
        ("a::float64 > -1e400", r"1e400 \(line 1, column 15\): the number is too large for 128 bits and for a double"),
        ("a + 1 > 2", r"a \+ 1 \(line 1, column 1\): it is not supported"),
        ("b = 'x' and\n length(a) = 2", r"LENGTH\(a\) \(line 2, column 2\): it is not supported"),
        ("a.b = 1", "write a name with a dot in double quotes"),
        ("a like 'x\\'", "the pattern ends in an escape character"),
        ("a ~ 5", "text is needed"),
        ("a exists", "write a IS PRESENT"),
        ("lower(a) = 'x'", "to ignore case, write ILIKE"),
        ("regexp_like(a, 'x', 'g')", "the only flag is 'i'"),
        ("a like 'x%' escape '!'", "it is not supported"),
        ("a = null", "write IS NULL"),
        ("a = b", "only comparisons of a column with a literal are supported: write text in single quotes: 'b'"),
        ("flag", "it is not a condition"),
        ("a in (select 1)", "query is not supported"),
        ("a between symmetric 1 and 2", "symmetric is not supported"),
        ("a::nothing = 1", "unknown type 'nothing'"),
        ("select 1", "it is not supported"),
        ("a = 1; b = 2", "one expression is needed"),
        ("a =", "the text is not a SQL expression"),
        ("", "one expression is needed"),
    ],
)
def test_unsupported_parts_are_named_with_position(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        where.parse(text)


def test_command_shows_only_selected_rows(run: Any, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--where", "tenant = 'acme' and offset >= 9990", "--json")
    assert result.code == 0
    assert len(result.lines) == 2
    state = samples / "streams-state-0_0"
    result = run("read", state, "-s", "latest", "--where", "tenant = 'acme' and retry::int > 0", "--json")
    assert (result.code, len(result.lines)) == (0, 135)
    result = run("read", samples / "orders-0", "--where", "retry > 2")
    assert result.code == 2
    assert "the header needs a type" in result.err
