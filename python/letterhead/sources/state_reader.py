"""``letterhead.read.state``: read the state directories of Kafka Streams and of letterhead."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from letterhead._optional_dependencies import install_hint

with install_hint("reading a state directory", "letterhead[arrow,state]"):
    import pyarrow  # noqa: F401

from letterhead._row_request import row_request
from letterhead.reader import Reader
from letterhead.sources.base import check_options
from letterhead.sources.stores import StateStores

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.where.conditions import Where

__all__ = ["state"]


def state(
    directory: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    errors: OnError = "raise",
    **options: Unpack[ReadOptions],
) -> Reader:
    """Read the RocksDB stores of Kafka Streams or letterhead, without a JVM.

    The directory is not changed or locked. A store that a process has open can be read, except for rows that the process
    has not written to files yet. Rows that an unfinished upgrade has left in an older column family are returned as the
    store itself would read them: without headers, and with the timestamp -1 if they had none.

    Parameters
    ----------
    directory : path
        A state, application, task or store directory. The type of its stores is determined at once; rows are read with
        the first batch.
    columns : sequence of str, optional
        Names of the columns, in order. By default all columns of the type of store:

        * ``task`` and ``store``, if there are several;
        * ``key``, without the times that a stored key contains;
        * for windows ``window_start`` and ``sequence``, and ``window_end`` if ``window_size`` is given; for sessions
          ``session_start`` and ``session_end``; for versions ``valid_from`` and ``valid_to``, null for the latest one;
        * ``timestamp``, if values have one; all of these times are ``timestamp[ms, UTC]``;
        * ``value``, the payload; null for a version that deletes the key;
        * ``headers``, if the store keeps them, and the argument ``headers`` is not given.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    where : Condition or str, optional
        Condition that selects the rows: on headers and on the columns above, as in :mod:`letterhead.arrow`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with an invalid row: raise the first error, return null for what cannot be read, or also describe the
        errors in a last column, null for a valid row. Columns that were not requested are not checked.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Reader
        The rows by task and store, then by segment, then by stored key.

    Raises
    ------
    StoreNotFoundError
        If the directory contains no store.
    FileNotFoundError, NotADirectoryError
        If the directory does not exist.
    ValueError
        If the stores have several types, an option is invalid, or two columns would have the same name.
    DamagedRowError
        While reading, if ``errors="raise"``: it names the store, the stored key, and the byte in the stored value.
    ProcessorStateError
        If the files cannot be opened or read.
    ModuleNotFoundError
        If pyarrow or rocksdict is not installed.

    Warns
    -----
    UserWarning
        If the type of a store is assumed, because the files fit several, or a process has a store open.

    Examples
    --------
    >>> import letterhead as lh
    >>> with lh.read.state("tests/samples/streams-state-0_0", store="sessions") as rows:
    ...     rows.schema.names, rows.read_all().num_rows
    (['key', 'session_start', 'session_end', 'value', 'headers'], 300)
    """
    source = StateStores(Path(directory), one_name=False)
    request = row_request(options, columns=columns, headers=headers, where=where, errors=errors)
    check_options([source], request)
    return source.reader(request)
