"""Parameters of functions, with the options that a typed dictionary names in place of ``**options``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return all parameters that can be passed by name; options of a dictionary follow the others."""
    found = dict(inspect.signature(function).parameters)
    for name, parameter in list(found.items()):
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            del found[name]
            (options,) = get_args(get_type_hints(function)[name])
            found |= {
                key: inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=type)
                for key, type in options.__annotations__.items()
            }
    return found
