"""The table of a convention: its headers and the types of their values."""

from __future__ import annotations

from typing import NamedTuple

from letterhead.fields import Field, field

__all__ = ["Profile", "Row"]


class Row(NamedTuple):
    """One header of a convention.

    Attributes
    ----------
    column : str
        Name of the output column.
    header : str
        Key of the header.
    type : str
        What its value is, as :func:`letterhead.field` takes it.
    note : str
        What it says, in a few words, and what takes it further apart.
    """

    column: str
    header: str
    type: str
    note: str


class Profile(NamedTuple):
    """A convention.

    Attributes
    ----------
    name : str
        Name under which :func:`letterhead.profile` gives it.
    title : str
        What it is.
    source : str
        The document or program that says which headers there are, and with which bytes.
    rows : tuple of Row
        Its headers, in the order of the columns.
    """

    name: str
    title: str
    source: str
    rows: tuple[Row, ...]

    def columns(self) -> dict[str, Field]:
        """Give the columns, as ``select`` takes them."""
        return {row.column: field(row.type, key=row.header) for row in self.rows}
