"""Parse the argument ``where``: a condition or SQL text."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from letterhead.where.conditions import Condition, Operand

__all__ = ["as_condition", "parse"]

_FOREIGN = {"pyarrow.Expression": "pyarrow.compute.field", "polars.Expr": "polars.col"}
"""Expression types of other libraries, and the function of each library that creates a column expression."""


def parse(text: str, *, timezone: tzinfo | None = None) -> Condition:
    """Parse a condition from SQL text.

    Parameters
    ----------
    text : str
        Comparisons of columns with literals, ``IN``, ``BETWEEN``, ``IS [NOT] NULL``, ``LIKE 'prefix%'``, ``AND``, ``OR``
        and ``NOT``. ``ILIKE`` ignores case; ``tenant ~ '^a.*z$'`` and ``REGEXP_LIKE(tenant, '^a', 'i')`` use regular
        expressions as in :meth:`Operand.matches`; ``tenant PRESENT`` is also true for a header with a null value.
        ``retry::int32`` or ``CAST(retry AS int)`` sets the type of a header; ``headers['offset']`` is a header whose key is
        the name of a record field; ``'eu' = ANY(route)`` tests all headers with a key, and ``ANY(headers) ~ 'timeout'`` the
        headers of all keys. Times are written as in ``timestamp > '2026-01-01T08:30:00Z'`` or ``timestamp > '-1h'``. Names
        and types in double quotes may contain any characters: ``retry::"int32:le"``.
    timezone : datetime.tzinfo, optional
        Time zone for times without one, as in ``timestamp > '2026-01-01T08:30:00'``; by default these are rejected.

    Returns
    -------
    Condition
        The same condition as created with :func:`col` and operators.

    Raises
    ------
    ValueError
        If a part of the text is not supported; the message contains the part and its position.
    ModuleNotFoundError
        If sqlglot is not installed.

    Examples
    --------
    >>> from letterhead import where
    >>> where.parse("tenant = 'acme' AND retry::int > 2")
    (col('tenant') == 'acme') & (col('retry', 'int32') > 2)
    """
    from letterhead.where.sql import condition_of_sql

    return condition_of_sql(text, timezone)


def as_condition(where: Any) -> Condition:
    """Convert a value of the argument ``where`` to a condition."""
    if isinstance(where, Condition):
        return where
    if isinstance(where, str):
        return parse(where)
    hint = f": compare it, as in {where!r} == True" if isinstance(where, Operand) else ""
    if (of := _FOREIGN.get(f"{type(where).__module__.partition('.')[0]}.{type(where).__name__}")) is not None:
        # Expressions are not converted: neither library can traverse expressions with columns of unknown types.
        hint = f": write letterhead.col in place of {of}, with the same operators, or SQL text"
    raise TypeError(
        f"where must be a condition such as col('tenant') == 'acme', or SQL text, not {type(where).__name__}{hint}"
    )
