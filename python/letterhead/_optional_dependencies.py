"""Imports of optional dependencies, with an error that names the extra to install."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires

__all__ = ["how_to_install", "install_hint", "pip_install"]

_EXTRA = re.compile(r"letterhead\[(.*)\]")
_REQUIREMENT = re.compile(r"(.+?) ?; extra == '(.*)'")


@contextmanager
def install_hint(feature: str, install: str) -> Iterator[None]:
    """Import optional dependencies within this context; if one is missing, the error explains how to install it.

    ``feature`` needs them, and ``install`` names them: a package, or extras such as ``letterhead[arrow,kafka]``. Errors
    raised by installed modules are passed on.

    Examples
    --------
    >>> with install_hint("a condition as SQL text", "letterhead[sql]"):
    ...     import no_such_module
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: a condition as SQL text needs no_such_module: pip install 'sqlglot>=30'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ModuleNotFoundError(how_to_install(feature, package, install), name=error.name) from error


def how_to_install(feature: str, missing: str | None, install: str) -> str:
    """Return the message for a missing package."""
    return f"{feature} needs {missing}: {pip_install(install)}"


def pip_install(install: str) -> str:
    """Return the command that installs a package, or the packages of extras.

    Extras are replaced by their packages: whether this package came from an index, a clone or a wheel is unknown, and
    its name may belong to another package on an index.
    """
    extras = _EXTRA.fullmatch(install)
    try:
        packages = _packages(extras[1].split(",")) if extras else [install]
    except PackageNotFoundError:  # the package has no metadata, for example on the path of a worker
        packages = [install]
    return "pip install " + " ".join(
        f"'{package}'" if re.search(r"[^\w.-]", package) else package for package in packages
    )


def _packages(extras: list[str]) -> list[str]:
    """Return the requirements of extras, and of the extras that these include."""
    found: dict[str, None] = {}
    for requirement in requires("letterhead") or ():
        match = _REQUIREMENT.fullmatch(requirement)
        if match and match[2] in extras:
            nested = _EXTRA.fullmatch(match[1])
            found |= dict.fromkeys(_packages(nested[1].split(",")) if nested else [match[1]])
    return list(found)
