"""Conditions on headers and record fields: the argument ``where`` of readers and functions.

:func:`letterhead.col` creates operands, and :func:`parse` parses SQL text.
"""

from letterhead.where.conditions import Condition, Operand, Where
from letterhead.where.parsing import parse

__all__ = ["Condition", "Operand", "Where", "parse"]


def __dir__() -> list[str]:
    return __all__
