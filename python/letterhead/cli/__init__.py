"""The command ``letterhead``: look at, decode and encode message headers, and see the library at work."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the command's name; those of the process when left out.

    Returns
    -------
    int
        0 when all is well, 1 when bytes have faults or a check failed, 2 for wrong usage.
    """
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as missing:
        print(f"letterhead: the command needs {missing.name}: pip install 'letterhead[cli]'", file=sys.stderr)
        return 2
    from letterhead.cli.app import run

    return run(argv)
