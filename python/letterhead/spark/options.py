"""What a data source is to give, as the text that Spark's options are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from letterhead.fields import normalise
from letterhead.spark.sources.options import LIMITS

if TYPE_CHECKING:
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["options"]


def options(
    *, columns: Sequence[str] | None = None, headers: Columns | None = None, limits: Limits | None = None
) -> dict[str, str]:
    """Write what to read as options of letterhead's data sources.

    Spark does not tell a data source which columns a query needs, so they are said beforehand, and what is not asked for
    is not built.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of the data source, in order.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.spark.select_headers`; they come after the columns.
    limits : Limits, optional
        The most to read; what is not said is as each worker has it, see :class:`letterhead.Limits`.

    Returns
    -------
    dict of str to str
        For ``spark.read.format(...).options(**...)``.

    Raises
    ------
    TypeError, ValueError
        If something is not of the type it should be, or misspelt.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.options(columns=["offset"], headers={"tenant": "string"})
    {'columns': '["offset"]', 'headerColumns': '{"tenant": {"type": "string"}}'}
    """
    made = {}
    if columns is not None:
        if isinstance(columns, str):
            raise TypeError("columns must be a list of column names, not str")
        made["columns"] = json.dumps(list(columns))
    if headers is not None:
        made["headerColumns"] = json.dumps({name: _parts(name, spec) for name, *spec in normalise(headers, sql=True)})
    for option, name in LIMITS.items():
        most = None if limits is None else getattr(limits, name)
        if most is not None:
            made[option] = str(most)
    return made


def _parts(name: str, spec: list[Any]) -> dict[str, Any]:
    key, type, repeat, required = spec
    if not isinstance(key, str):
        raise TypeError(f"column {name!r}: a key must be str here, not {key.__class__.__name__}")
    usual = {"key": name, "repeat": "last", "required": False}
    given = {"type": type, "key": key, "repeat": repeat, "required": required}
    return {part: value for part, value in given.items() if part not in usual or value != usual[part]}
