"""The command ``letterhead``: look at, decode and encode message headers, and see the library at work."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from letterhead._optional_dependencies import how_to_install

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
        said = how_to_install("the command", missing.name, "'letterhead[cli]'")
        print(f"letterhead: {said}", file=sys.stderr)
        return 2
    try:
        from letterhead import _native  # noqa: F401
    except ImportError as broken:
        return _without_native(sys.argv[1:] if argv is None else argv, broken)
    from letterhead.cli.run import run

    return run(argv)


def _without_native(argv: Sequence[str], broken: ImportError) -> int:
    """Run the one command that can do without the compiled core, as it says why that does not load."""
    if list(argv) not in (["doctor"], ["doctor", "--json"]):
        print(f"letterhead: the compiled core does not load: {broken} (see letterhead doctor)", file=sys.stderr)
        return 1
    from letterhead.cli.doctor import run_doctor

    return run_doctor(json="--json" in argv)
