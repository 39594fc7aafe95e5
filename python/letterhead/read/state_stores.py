"""The stores of a directory that can be read as one table: those of all tasks, of one kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from letterhead.errors import StoreChoiceError, unknown_name
from letterhead.limits import Limits
from letterhead.read.state_directory import find_stores
from letterhead.read.state_kinds import KINDS, VALUES, Kind
from letterhead.read.state_rows import Store, open_store

__all__ = ["open_stores", "remarks"]


def open_stores(
    directory: Path,
    name: str | None = None,
    said: str | None = None,
    values: str | None = None,
    limits: Limits | None = None,
) -> list[Store]:
    """Find the stores in a directory, and make sure that their rows have the same columns.

    Tasks bring their stores up to date each in its own time: where some have and some have not, all are read as the
    newest of them.

    Parameters
    ----------
    directory : Path
        A state, application, task or store directory.
    name : str, optional
        The stores of this name only.
    said, values : str, optional
        Their kind and what their values have, if the user says it.
    limits : Limits, optional
        The most to read of a value with headers; what is not said is as the process has it.

    Returns
    -------
    list of Store
        By task and name.

    Raises
    ------
    StoreNotFoundError
        If there are none.
    StoreChoiceError
        If they are of several kinds, or the user says what cannot be.
    ProcessorStateError
        If one cannot be opened.
    """
    if said is not None and said not in KINDS:
        raise StoreChoiceError(str(unknown_name("store type", said, KINDS)))
    found = [open_store(each, said, values, limits) for each in find_stores(directory, name)]
    names = {store.found.name for store in found}
    stores = [
        store for name in names for store in _alike([each for each in found if each.found.name == name], values, limits)
    ]
    stores.sort(key=lambda store: (store.found.task, store.found.name))
    if len({(store.kind.keys, store.kind.values) for store in stores}) > 1:
        each = "; ".join(sorted({f"{store.found.name} is {store.kind}" for store in stores}))
        what = "say which by store=" if len(names) > 1 else "give the directory of one task"
        raise StoreChoiceError(f"the stores in {directory} differ in type: {each}: {what}")
    return stores


def _alike(tasks: list[Store], values: str | None, limits: Limits | None) -> list[Store]:
    """Read the stores of one name as what the newest of them is."""
    # Where there are no rows, or few, the kind of a store shows in those of other tasks.
    certain = {store.kind.name for store in tasks if not store.kind.assumed}
    if len(certain) == 1:
        [said] = certain
        tasks = [open_store(store.found, said, values, limits) if store.kind.name != said else store for store in tasks]
    newest = max((store.kind for store in tasks), key=lambda kind: VALUES.index(kind.values))
    return [replace(store, kind=_newer(store.kind, newest)) for store in tasks]


def _newer(kind: Kind, newest: Kind) -> Kind:
    families = (newest.layout.family, *(older.family for older in newest.layout.legacy))
    same = kind.name == newest.name and kind.layout.family in families
    return replace(kind, values=newest.values) if same else kind


def remarks(stores: list[Store]) -> list[str]:
    """Say what a reader should know of the stores: what was assumed, and what is not in the files yet."""
    assumed = [f"{store.assumption} (store_type= and values= say it)" for store in stores if store.kind.assumed]
    return assumed + [store.unwritten for store in stores if store.process is not None]
