"""Parse typed header columns written as text: ``tenant,retry:int32,id=header-id:uuid``."""

from __future__ import annotations

import re
from typing import NamedTuple

from letterhead.fields import Field, field

__all__ = ["TypedHeader", "columns_from_text", "parse_header_text", "split_columns"]


class TypedHeader(NamedTuple):
    """A column, written as NAME, NAME:TYPE or NAME=HEADER:TYPE."""

    name: str
    key: str
    type: str


def split_columns(text: str) -> list[str]:
    """Split a list of columns at commas outside of types such as ``decimal(9,2)``."""
    return [*filter(None, map(str.strip, re.split(r",(?![^(]*\))", text)))]


def parse_header_text(option: str, text: str) -> list[TypedHeader]:
    """Parse typed columns; invalid text raises a ValueError that names the option.

    Examples
    --------
    >>> [tuple(column) for column in parse_header_text("--headers", "tenant,id=header-id:uuid")]
    [('tenant', 'tenant', 'string'), ('id', 'header-id', 'uuid')]
    """
    columns: list[TypedHeader] = []
    for column in split_columns(text):
        header, _, type = column.partition(":")
        name, renamed, key = header.partition("=")
        if not name or (renamed and not key):
            columns.clear()
            break
        if name in (made.name for made in columns):
            raise ValueError(
                f"{option} makes column {name!r} twice: give one of them another name, as in NAME=HEADER:TYPE"
            )
        if not type and (typed := _as_typed(header)):
            raise ValueError(f"{option}: name and type are separated by a colon: {typed}")
        columns.append(TypedHeader(name, key or name, type or "string"))
    if not columns:
        raise ValueError(f"{option} needs NAME:TYPE, as in tenant:string,amount_cents:int64, or NAME=HEADER:TYPE")
    return columns


def _as_typed(column: str) -> str | None:
    """Return a column in the syntax of SQL (``tenant string``) as NAME:TYPE; None for other text."""
    name, _, type = column.rpartition(" ")
    try:
        field(type)
    except ValueError:
        return None
    return f"{name.rstrip()}:{type}" if name else None


def columns_from_text(option: str, text: str) -> dict[str, str | Field]:
    """Return the columns described by text, as a value for ``headers=``."""
    return {name: type if key == name else field(type, key=key) for name, key, type in parse_header_text(option, text)}
