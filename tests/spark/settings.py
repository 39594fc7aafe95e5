"""Settings of Spark that change what its expressions return, and may not change what ours return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SETTINGS: dict[str, tuple[Any, ...]] = {
    "spark.sql.decimalOperations.allowPrecisionLoss": (False,),
    "spark.sql.ansi.enabled": (False,),
    "spark.sql.session.timeZone": ("America/St_Johns", "Asia/Kathmandu"),
    "spark.sql.legacy.sizeOfNull": (True,),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY",),
    "spark.sql.legacy.chunkBase64String.enabled": (True,),
    "spark.sql.caseSensitive": (True,),
    "spark.sql.codegen.wholeStage": (False,),
    "spark.sql.legacy.literal.pickMinimumPrecision": (False,),
}
"""Settings, and the values that differ from the default."""

EACH = [{name: value} for name, values in SETTINGS.items() for value in values]

ALL = {name: values[0] for name, values in SETTINGS.items()}


@contextmanager
def configured(spark: Any, **settings: Any) -> Iterator[None]:
    """Set settings, and restore them."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
