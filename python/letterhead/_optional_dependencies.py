"""Packages that not everyone who uses letterhead has: what is said where one is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["how_to_install", "needed"]


@contextmanager
def needed(what: str, install: str) -> Iterator[None]:
    """Import within it what not everyone has, so that whoever does not have it is told how to get it.

    Parameters
    ----------
    what : str
        What cannot do without it.
    install : str
        What pip is to install, as a shell takes it.

    Raises
    ------
    ModuleNotFoundError
        If a module is not there, with its name. What is there and broken says so itself.

    Examples
    --------
    >>> with needed("a scan", "'letterhead[arrow]'"):
    ...     import no_such_module
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: a scan needs no_such_module: pip install 'letterhead[arrow]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ModuleNotFoundError(how_to_install(what, package, install), name=error.name) from error


def how_to_install(what: str, missing: str | None, install: str) -> str:
    """Say what is missing and how to get it."""
    return f"{what} needs {missing}: pip install {install}"
