"""The ``letterhead`` command: inspect, decode, encode, convert and scan message headers; :func:`main` runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType

from letterhead._optional_dependencies import how_to_install

USAGE, INTERRUPTED = 2, 130

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
        0 for success, 1 if the data has errors or a check failed, 2 for wrong usage, 3 if a source does not exist, or cannot
        be reached or read; 130 if the command was interrupted, 141 if the reader of a pipe is gone, 143 after SIGTERM.
    """
    try:
        return _main(argv)
    except KeyboardInterrupt:
        # Interrupted while modules are imported.
        print("letterhead: interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(argv: Sequence[str] | None) -> int:
    if argv is None and "doctor" not in sys.argv:
        sys.meta_path.insert(0, _NoPandas())
    args = sys.argv[1:] if argv is None else [*argv]
    try:
        from letterhead import _native  # noqa: F401
    except ImportError as broken:
        return _without_native(args, broken)
    if sys.stdout is not None and args in ([], ["--version"], ["-V"], ["--help"], ["-h"]):
        from letterhead.cli.command_table import VARIABLE

        if VARIABLE not in os.environ:
            return _run_alone(args)
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as missing:
        message = how_to_install("the command", missing.name, "letterhead[cli]")
        print(f"letterhead: {message}", file=sys.stderr)
        return 2
    if argv is None and "read" in args and not any(arg.startswith(("--value", "--key")) for arg in args):
        _import_arrow()
    from letterhead.cli.run import run

    return run(args)


def _run_alone(args: Sequence[str]) -> int:
    """Print the help or the version, without importing other commands."""
    if args in (["--version"], ["-V"]):
        from letterhead.cli.version import print_version

        return print_version()
    from letterhead.cli.command_table import print_help

    # Without a command, print the help and return the code for wrong usage.
    return print_help() or (0 if args else USAGE)


def _import_arrow() -> None:
    """Import pyarrow without numpy, which takes a fifth of the start time; `read` needs numpy only for --value and --key."""
    if "numpy" not in sys.modules:
        sys.modules["numpy"] = None  # type: ignore[assignment]
        with suppress(ImportError):
            import pyarrow.compute  # noqa: F401
        del sys.modules["numpy"]


class _NoPandas:
    """Keeps pyarrow from importing pandas, which takes a quarter of the start time; only doctor looks for pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Refuse to import pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("commands do not use pandas", name=name)


def _without_native(argv: Sequence[str], broken: ImportError) -> int:
    """Run `letterhead doctor`, which reports why the compiled core does not load; reject all other commands."""
    if list(argv) not in (["doctor"], ["doctor", "--json"]):
        print(f"letterhead: the compiled core does not load: {broken} (see letterhead doctor)", file=sys.stderr)
        return 1
    from letterhead.cli.doctor import run_doctor

    return run_doctor(json="--json" in argv)
