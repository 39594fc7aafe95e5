"""Test programs that use headers: Hypothesis strategies, and a comparison that reports differences.

Only the strategies need hypothesis.

Examples
--------
>>> from hypothesis import given
>>> import letterhead as lh
>>> from letterhead import testing
>>> @given(testing.headers("iggy"))
... def test_encoded_headers_are_decoded(headers):
...     testing.assert_headers_equal(lh.decode(lh.encode(headers, "iggy"), "iggy"), headers)
>>> test_encoded_headers_are_decoded()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from letterhead._optional_dependencies import install_hint
from letterhead.testing.compare import assert_headers_equal

if TYPE_CHECKING:
    from letterhead.testing.strategies import encoded, headers, keys, messages, values

__all__ = ["assert_headers_equal", "encoded", "headers", "keys", "messages", "values"]

_STRATEGIES = ("encoded", "headers", "keys", "messages", "values")


def __getattr__(name: str) -> Any:
    if name not in _STRATEGIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # An AttributeError for a missing package would look like a misspelt name.
    with install_hint(f"letterhead.testing.{name}", "hypothesis"):
        import hypothesis  # noqa: F401
    return getattr(importlib.import_module("letterhead.testing.strategies"), name)


def __dir__() -> list[str]:
    return __all__
