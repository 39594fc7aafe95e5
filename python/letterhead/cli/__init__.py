"""The ``letterhead`` command: inspect, decode, encode, convert and scan message headers; :func:`main` runs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from letterhead._optional_dependencies import how_to_install

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the command's name; by default the arguments of this process.

    Returns
    -------
    int
        0 for success, 1 if the data has errors or a check failed, 2 for wrong usage, 3 if a source cannot be reached or
        read.
    """
    if argv is None and "doctor" not in sys.argv:
        sys.meta_path.insert(0, _NoPandas())
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as missing:
        message = how_to_install("the command", missing.name, "'letterhead[cli]'")
        print(f"letterhead: {message}", file=sys.stderr)
        return 2
    try:
        from letterhead import _native  # noqa: F401
    except ImportError as broken:
        return _without_native(sys.argv[1:] if argv is None else argv, broken)
    from letterhead.cli.run import run

    return run(argv)


class _NoPandas:
    """Keeps pyarrow from importing pandas, which takes a quarter of the start: only doctor looks for it."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Refuse to import pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("commands do not use pandas", name=name)


def _without_native(argv: Sequence[str], broken: ImportError) -> int:
    """Run `letterhead doctor`, which reports why the compiled core does not load; refuse all other commands."""
    if list(argv) not in (["doctor"], ["doctor", "--json"]):
        print(f"letterhead: the compiled core does not load: {broken} (see letterhead doctor)", file=sys.stderr)
        return 1
    from letterhead.cli.doctor import run_doctor

    return run_doctor(json="--json" in argv)
