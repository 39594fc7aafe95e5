"""Single file as the target of a copy: :class:`FileTarget`, which writes Parquet, Arrow IPC or JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letterhead._background import Background
from letterhead._durable_files import make_directory
from letterhead._object_paths import ObjectPath
from letterhead._row_groups import RowGroups
from letterhead._table_writers import form_of_name
from letterhead.copies.part_files import StagedFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENDINGS", "FileTarget"]

ENDINGS = ".parquet, .arrow, .arrows or .jsonl (also .jsonl.gz and .jsonl.zst)"


class FileTarget:
    """Writes a file that appears once it is complete; a copy that was killed starts over.

    Parameters
    ----------
    path : Path or ObjectPath
        The file, which must not exist; its extension is in :data:`ENDINGS`.
    """

    def __init__(self, path: Path | ObjectPath) -> None:
        form, self._codec = form_of_name(path.name)
        if form is None:
            raise ValueError(f"the name of {path} does not end with {ENDINGS}: name such a file, or a directory")
        self.path = path
        self._form = form

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write all rows, with ``schema`` if there are none; raise FileExistsError if the file exists."""
        import pyarrow as pa

        self._check_new()
        with self._open() as file, ExitStack() as files:
            out = file
            if self._codec is not None:  # closing a compressor also closes its file
                out = pa.CompressedOutputStream(os.fdopen(os.dup(file.fileno()), "wb"), self._codec)
                files.enter_context(closing(out))
            with Background[None]() as background:
                groups = RowGroups(out, background, self._form)
                for batch in batches:
                    groups.add(batch)
                groups.finish(schema)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        if isinstance(self.path, Path):
            make_directory(self.path.parent)
        staged = StagedFile(self.path.parent, self.path.name)
        file = staged.create(0)
        try:
            yield file
            self._check_new()
            staged.publish(file, self.path.name)
        except BaseException:
            staged.discard(file)
            raise
        staged.rename(self.path.name)

    def _check_new(self) -> None:
        if (self.path.parent / self.path.name).exists():  # an object path caches its metadata
            raise FileExistsError(f"{self.path} exists: name another file, or a directory, which a copy continues")
