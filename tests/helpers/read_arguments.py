"""Arguments of functions that read: keywords, sorted into those of the function and those of its options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import letterhead as lh

__all__ = ["read_arguments"]

OPTIONS = frozenset(field.name for field in fields(lh.ReadOptions))


def read_arguments(**keywords: Any) -> dict[str, Any]:
    own = {name: value for name, value in keywords.items() if name not in OPTIONS}
    chosen = {name: value for name, value in keywords.items() if name in OPTIONS}
    return {**own, "options": lh.ReadOptions(**chosen)} if chosen else own
