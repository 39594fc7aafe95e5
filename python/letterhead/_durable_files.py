"""Replace files and create directories so that a crash of the machine leaves either the old state or the new one."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["make_directory", "replace_file", "sync_directory"]


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file; after a crash it has either the old or the new content."""
    temporary = path.with_name(path.name + ".new")
    # A file of this name may remain from a crash, or be a link to another file.
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create a directory and its parents, and flush their names to disk."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """Flush the file names of a directory to disk, if the system can open directories."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
