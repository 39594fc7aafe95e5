"""Open the stores of all tasks in a directory for reading as one table; they must have one type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from letterhead.errors import StoreChoiceError
from letterhead.limits import Limits
from letterhead.state.base import FORMATS
from letterhead.state.reading.directory import find_stores
from letterhead.state.reading.rows import StoreReader, open_store
from letterhead.state.reading.store_types import DetectedType, check_store_type

__all__ = ["open_stores", "remarks"]


def open_stores(
    directory: Path,
    name: str | None = None,
    store_type: str | None = None,
    value_format: str | None = None,
    limits: Limits | None = None,
) -> list[StoreReader]:
    """Open the stores in a directory, or only those with a given name, sorted by task and name.

    Tasks upgrade their stores independently, so all tasks are read with the newest format of any task. ``store_type``,
    ``limits``, ``value_format`` (there ``values``) and the errors are as in :func:`letterhead.read.state`.
    """
    if store_type is not None:
        check_store_type(store_type)
    opened: dict[str, list[StoreReader]] = {}
    for files in find_stores(directory, name):
        opened.setdefault(files.name, []).append(open_store(files, store_type, value_format, limits))
    stores = [store for tasks in opened.values() for store in _with_common_type(tasks, value_format, limits)]
    stores.sort(key=lambda store: (store.files.task, store.files.name))
    if len({(store.type.key_format, store.type.value_format) for store in stores}) > 1:
        types = "; ".join(sorted({f"{store.files.name} is {store.type}" for store in stores}))
        remedy = "say which by store=" if len(opened) > 1 else "give the directory of one task"
        raise StoreChoiceError(f"the stores in {directory} differ in type: {types}: {remedy}")
    return stores


def _with_common_type(tasks: list[StoreReader], value_format: str | None, limits: Limits | None) -> list[StoreReader]:
    """Return the stores of one name, with the newest type of any task."""
    # For a task with few rows or none, use the type determined from other tasks.
    certain = {store.type.name for store in tasks if not store.type.assumed}
    if len(certain) == 1:
        [name] = certain
        tasks = [
            open_store(store.files, name, value_format, limits) if store.type.name != name else store for store in tasks
        ]
    newest = max((store.type for store in tasks), key=lambda type: FORMATS.index(type.layout_name))
    return [replace(store, type=_as_newest(store.type, newest)) for store in tasks]


def _as_newest(type: DetectedType, newest: DetectedType) -> DetectedType:
    families = (newest.layout.family, *(older.family for older in newest.layout.legacy))
    same = type.name == newest.name and type.layout.family in families
    return replace(type, layout_name=newest.layout_name) if same else type


def remarks(stores: list[StoreReader]) -> list[str]:
    """Return warnings for users of the stores: assumed types, and rows that may not have been written to files yet."""
    assumed = [f"{store.assumption} (choose with store_type= and values=)" for store in stores if store.type.assumed]
    return assumed + [store.unwritten for store in stores if store.process is not None]
