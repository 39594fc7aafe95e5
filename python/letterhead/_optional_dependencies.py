"""Imports of optional dependencies, with an error that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["how_to_install", "install_hint"]


@contextmanager
def install_hint(feature: str, install: str) -> Iterator[None]:
    """Import optional dependencies within this context; a missing one raises an error that says how to install it.

    ``feature`` needs them, and ``install`` is the argument of ``pip install``, quoted for a shell. Errors raised
    by installed modules are passed on.

    Examples
    --------
    >>> with install_hint("a scan", "'letterhead[arrow]'"):
    ...     import no_such_module
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: a scan needs no_such_module: pip install 'letterhead[arrow]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ModuleNotFoundError(how_to_install(feature, package, install), name=error.name) from error


def how_to_install(feature: str, missing: str | None, install: str) -> str:
    """Return the message for a missing package."""
    return f"{feature} needs {missing}: pip install {install}"
