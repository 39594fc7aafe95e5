"""For tests of programs that work with headers: what Hypothesis draws, and a comparison that says what differs.

The strategies need hypothesis, the comparison does not.

Examples
--------
>>> from hypothesis import given
>>> import letterhead as lh
>>> from letterhead import testing
>>> @given(testing.headers("iggy"))
... def test_what_is_written_is_read(headers):
...     testing.assert_headers_equal(lh.decode(lh.encode(headers, "iggy"), "iggy"), headers)
>>> test_what_is_written_is_read()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from letterhead._optional_dependencies import needed
from letterhead.testing.compare import assert_headers_equal

if TYPE_CHECKING:
    from letterhead.testing.strategies import cells, headers, keys, messages, values

__all__ = ["assert_headers_equal", "cells", "headers", "keys", "messages", "values"]

_STRATEGIES = ("cells", "headers", "keys", "messages", "values")


def __getattr__(name: str) -> Any:
    if name not in _STRATEGIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Not an AttributeError, which would be read as a misspelt name.
    with needed(f"letterhead.testing.{name}", "hypothesis"):
        import hypothesis  # noqa: F401
    return getattr(importlib.import_module("letterhead.testing.strategies"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_STRATEGIES})
