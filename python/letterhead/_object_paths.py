"""Object store paths with the interface of :class:`pathlib.Path`: :class:`ObjectPath`, and :func:`path_of`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import total_ordering
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import fs

__all__ = ["ObjectPath", "is_object_url", "path_of", "public_name"]

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
"""URL schemes of stores in which an object appears only when it is complete."""

_URL = re.compile(rf"({'|'.join(SCHEMES)}|fsspec\+[a-z0-9+.-]+)://", re.IGNORECASE)


def is_object_url(name: str) -> bool:
    """Return whether a name is a URL of an object store, or of a file system of fsspec (``fsspec+memory://``)."""
    return _URL.match(name) is not None


def public_name(name: str) -> str:
    """Return a name without the credentials and options that an object store URL may contain."""
    if not is_object_url(name):
        return name
    scheme, _, rest = name.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2].rstrip('/')}"


def path_of(name: str) -> Path | ObjectPath:
    """Return the path for a local name or an object store URL.

    Raises
    ------
    ValueError
        If pyarrow cannot read a URL.
    OSError
        If the store cannot be reached.
    """
    if not is_object_url(name):
        return Path(name)
    import pyarrow as pa
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(name)
    except pa.ArrowInvalid:
        # pyarrow's message contains the URL, which may contain a secret.
        raise ValueError(f"the {name.partition('://')[0]}:// URL cannot be read: pass s3://bucket/path") from None
    return ObjectPath(filesystem, path.rstrip("/"), name.partition("://")[0])


@total_ordering
class ObjectPath:
    """Path in an object store, with the methods of :class:`pathlib.Path` that this package needs.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
        The store.
    path : str
        Bucket and key.
    scheme : str
        The scheme of URLs, for :meth:`__str__`.
    info : pyarrow.fs.FileInfo, optional
        Result of a listing.
    """

    def __init__(self, filesystem: fs.FileSystem, path: str, scheme: str, info: fs.FileInfo | None = None) -> None:
        self.filesystem = filesystem
        self.path = path
        self._scheme = scheme
        self._info = info

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """The directory."""
        return ObjectPath(self.filesystem, self.path.rpartition("/")[0], self._scheme)

    @property
    def suffix(self) -> str:
        """The file extension, with its dot."""
        return Path(self.name).suffix

    def __str__(self) -> str:
        return f"{self._scheme}://{self.path}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.filesystem, f"{self.path}/{name}", self._scheme)

    def __lt__(self, other: ObjectPath) -> bool:
        return self.path < other.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.path)

    def iterdir(self) -> Iterator[ObjectPath]:
        """Yield the entries of a directory; there are none if it does not exist."""
        from pyarrow import fs

        for info in self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True)):
            yield ObjectPath(self.filesystem, info.path, self._scheme, info)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Yield the paths below that match a pattern, one component at a time."""
        first, _, rest = pattern.partition("/")
        for path in self.iterdir():
            if fnmatchcase(path.name, first):
                yield from path.glob(rest) if rest else [path]

    def _type(self) -> fs.FileType:
        # The response to one request is used for all properties of a path.
        if self._info is None:
            self._info = self.filesystem.get_file_info(self.path)
        return self._info.type

    def exists(self) -> bool:
        """Return whether an object exists at this path or below it."""
        from pyarrow import fs

        return bool(self._type() != fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Return whether the path is a directory."""
        from pyarrow import fs

        return bool(self._type() == fs.FileType.Directory)

    def is_file(self) -> bool:
        """Return whether an object exists at this path."""
        from pyarrow import fs

        return bool(self._type() == fs.FileType.File)

    def open(self, mode: str = "rb") -> Any:
        """Open the object for reading at any position."""
        if mode != "rb":
            raise ValueError("objects are opened to be read")
        return self.filesystem.open_input_file(self.path)

    def read_bytes(self) -> bytes:
        """Return the content."""
        with self.open() as file:
            content: bytes = file.read()
            return content

    def write_bytes(self, content: Any) -> None:
        """Write an object, which appears when it is complete.

        The content is written in one call, which cannot be interrupted. If an interrupt came between several writes,
        closing the stream would publish a partial object.
        """
        with self.filesystem.open_output_stream(self.path, compression=None) as stream:
            stream.write(content)

    def unlink(self) -> None:
        """Delete the object."""
        self.filesystem.delete_file(self.path)

    def rename(self, name: str) -> None:
        """Move the object to another name in its directory."""
        self.filesystem.move(self.path, f"{self.path.rpartition('/')[0]}/{name}")
