"""State directories of Kafka Streams, and of our own stores, as Arrow streams."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from letterhead._optional_dependencies import needed

with needed("reading a state directory", "'letterhead[arrow,state]'"):
    import pyarrow as pa

from letterhead.read.reader import Reader
from letterhead.read.state_columns import StoreColumns
from letterhead.read.state_stores import open_stores, remarks

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["state"]


def state(
    directory: str | os.PathLike[str],
    *,
    store: str | None = None,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    store_type: str | None = None,
    values: str | None = None,
    window_size: int | None = None,
    errors: OnError = "raise",
    limits: Limits | None = None,
) -> Reader:
    """Read stores in RocksDB, made by Kafka Streams or by letterhead, without a JVM.

    Nothing in the directory is changed, and no lock is needed: a store that a process has open can be read, but for what
    the process has not written to files yet. Rows that an unfinished upgrade has left in an older column family come
    with the others, as the store itself would read them: with no headers, and with the timestamp -1 where they had none.

    Parameters
    ----------
    directory : path
        A state, application, task or store directory. What type of stores it holds is looked up at once; the rows are
        read when the first batch is asked for.
    store : str, optional
        The stores of this name only, of all tasks.
    columns : sequence of str, optional
        Names of the columns, in order. By default all that the type of store has:

        * ``task`` and ``store``, where there are several;
        * ``key``, without the times that stand beside it in a stored key;
        * of windows ``window_start`` and ``sequence``, and ``window_end`` if ``window_size`` is given; of sessions
          ``session_start`` and ``session_end``; of versions ``valid_from`` and ``valid_to``, null for the latest version;
        * ``timestamp``, ``timestamp[ms, UTC]`` as all of these times, where values have one;
        * ``value``, the payload; null where a version says that there is none;
        * ``headers``, where the store keeps them.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.arrow.select`; they come after the others.
    store_type : str, optional
        Where the files do not say: ``key-value``, ``window``, ``session``, ``versioned``, ``time-ordered-window`` or
        ``time-ordered-session``.
    values : {"plain", "timestamped"}, optional
        Of time-ordered windows without headers, whose files do not say.
    window_size : int, optional
        How many milliseconds a window lasts, which is not in the files.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a row that is not whole: the first one is raised; what cannot be read is null; or a last column
        ``error`` says what is wrong with it besides, null where it is whole. Columns that are not asked for are not read.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Reader
        The rows by task and store, then by segment, then by stored key.

    Raises
    ------
    StoreNotFoundError
        If there is no store.
    ValueError
        If the stores are of several types, or a name is misspelt.
    DamagedRowError
        From the reader, if ``errors="raise"``: it names the store, the stored key, and the byte in the stored value.
    ProcessorStateError
        If the files cannot be opened or read.
    ModuleNotFoundError
        If pyarrow or rocksdict is not there.

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
    stores = open_stores(Path(directory), store, store_type, values, limits)
    made = StoreColumns(stores, columns, headers, window_size=window_size, errors=errors, limits=limits)
    for remark in remarks(stores):
        warnings.warn(remark, stacklevel=2)

    def batches() -> Iterator[pa.RecordBatch]:
        for each in stores:
            for segment in each.found.segments:
                yield from made.batches(each, segment)

    return Reader(made.schema, batches)
