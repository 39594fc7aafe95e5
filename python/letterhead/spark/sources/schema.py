"""Schemas of the data sources: each determines its own from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["check_schema", "spark_schema"]


def spark_schema(of: pa.Schema) -> StructType:
    """Return Spark's schema for one of Arrow's."""
    import pyarrow as pa

    from letterhead.spark.schemas import spark_type

    return spark_type(pa.struct(list(of)))


def check_schema(source: str, own: StructType, given: StructType) -> None:
    """Raise ``ValueError`` if a user-specified schema differs from that of the source, which does not cast."""
    if given.simpleString() != own.simpleString():
        raise ValueError(
            f"{source} has a schema of its own, {own.simpleString()}: leave out .schema(...), and set the option columns"
        )
