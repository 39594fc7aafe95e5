"""What the command needs to know of a format, from the table of formats."""

from __future__ import annotations

import functools
from typing import Any, TypedDict

from letterhead import _native
from letterhead.cli.exits import Failure
from letterhead.cli.spelling import KeyForm
from letterhead.errors import unknown_name
from letterhead.limits import Limits


class Reading(TypedDict):
    """The options of every verb that reads."""

    lenient: bool
    strict_types: bool
    limits: Limits


class Converting(Reading):
    """Those, and that of writing."""

    canonical: bool


@functools.cache
def table_of_formats() -> dict[str, dict[str, Any]]:
    """Give the rows of the table by name."""
    return {row["name"]: row for row in _native.formats()}


def row_of(format: str) -> dict[str, Any]:
    """Give the row of a format; a misspelt name ends the command."""
    rows = table_of_formats()
    if format not in rows:
        raise Failure(str(unknown_name("format", format, rows)))
    return rows[format]


def is_batch(format: str) -> bool:
    """Say whether a cell of the format holds many messages."""
    return bool(row_of(format)["is_"] == "batch")


def keys_of(format: str) -> KeyForm:
    """Say what form the keys of the format have."""
    form: KeyForm = row_of(format)["keys"]
    return form


def in_microseconds(format: str) -> bool:
    """Say whether the times of the format are microseconds: Iggy's are, all others milliseconds."""
    return format.startswith("iggy")
