"""Options of operations, from the keyword arguments of a function: :func:`decode_options`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from letterhead._arrow_types import OnError
from letterhead._names import unknown_argument
from letterhead._native import DecodeOptions
from letterhead._parse_options import ParseOptions

__all__ = ["decode_options"]


def decode_options(
    function: Callable[..., Any], options: ParseOptions, *, errors: OnError, text_keys: bool = False
) -> DecodeOptions:
    """Return the options of an operation; raise TypeError for a name that the called function does not have."""
    for name in options:
        if name not in ParseOptions.__annotations__:
            raise unknown_argument(name, ParseOptions.__annotations__, function.__annotations__)
    return DecodeOptions(errors=errors, text_keys=text_keys, **options)
