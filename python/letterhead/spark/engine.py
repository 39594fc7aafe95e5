"""Engines that read headers, Spark's own expressions and Arrow: checks of the argument ``engine``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead._names import check_name
from letterhead.operations import DecodeOptions

__all__ = [
    "OTHER_ENGINE",
    "Engine",
    "NotReadBySparkError",
    "check_engine",
    "check_engine_on_sail",
    "check_plain_options",
    "has_plain_options",
]

Engine: TypeAlias = Literal["spark", "arrow"]

OTHER_ENGINE = "omit engine=, or pass 'arrow'"
"""Remedy for headers or options that Spark's expressions do not support."""


class NotReadBySparkError(ValueError):
    """Headers or options that Spark's expressions do not support, and Arrow does."""


def check_engine(engine: Engine | None) -> None:
    """Raise an error for an unknown engine."""
    if engine is not None:
        check_name("engine", engine, ("spark", "arrow"))


def check_engine_on_sail(engine: Engine | None, is_on_sail: bool) -> None:
    """Raise ``ValueError`` for Spark's expressions on Sail."""
    if engine == "spark" and is_on_sail:
        raise ValueError("engine='spark' does not run on Sail, whose expressions return other values: omit engine=")


def has_plain_options(options: DecodeOptions) -> bool:
    """Return whether the options that apply to binary columns have their defaults."""
    return options == DecodeOptions(errors=options.errors, error_column=options.error_column)


def check_plain_options(options: DecodeOptions, remedy: str = OTHER_ENGINE) -> None:
    """Raise an error for options of binary columns, which Spark's expressions do not read."""
    if not has_plain_options(options):
        raise NotReadBySparkError(f"lenient=, strict_types= and limits= apply to binary columns: {remedy}")
