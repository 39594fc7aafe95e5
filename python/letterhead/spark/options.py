"""Write columns, headers and limits as options of the data sources: :func:`options`."""

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
    """Write columns, headers and limits as options of letterhead's data sources.

    Spark does not tell a data source which columns a query needs. The source builds only those requested here.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of the data source, in order.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.spark.select_headers`; they follow the columns.
    limits : Limits, optional
        Limits on what is read. Unset fields use the defaults of each worker, see :class:`letterhead.Limits`.

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
        limit = getattr(limits, name, None)
        if limit is not None:
            made[option] = str(limit)
    return made


def _parts(name: str, spec: list[Any]) -> dict[str, Any]:
    key, type, repeat, required = spec
    if not isinstance(key, str):
        raise TypeError(f"column {name!r}: a key must be str here, not {key.__class__.__name__}")
    usual = {"key": name, "repeat": "last", "required": False}
    given = {"type": type, "key": key, "repeat": repeat, "required": required}
    return {part: value for part, value in given.items() if part not in usual or value != usual[part]}
