"""An extension of griffe: parameters that many functions share, which the package inserts into docstrings when it is imported."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import griffe

INSERT = runpy.run_path(
    str(Path(__file__).parents[1] / "python" / "letterhead" / "_shared_parameters.py")
)["insert"]


class SharedParameters(griffe.Extension):
    """Insert them into the docstrings that are read from the sources."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Insert them when an object has been loaded."""
        if obj.docstring:
            obj.docstring.value = INSERT(obj.docstring.value)
