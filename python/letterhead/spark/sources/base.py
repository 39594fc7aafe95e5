"""Base classes of data sources. Their errors for unsupported operations name a remedy, unlike Spark's own."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from letterhead.spark.schemas import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowSource", "BatchOnly", "ReadOnly"]


class ArrowSource(DataSource):  # type: ignore[misc]
    """Data source of Arrow batches, whose format name in Spark is ``format_name``."""

    format_name: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return cls.format_name

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return spark_schema(self.arrow_schema())

    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""


class ReadOnly(ArrowSource):
    """Data source without writers; ``instead`` names the remedy."""

    instead: str

    def writer(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a batch."""
        raise ValueError(f"{self.name()} only reads: {self.instead}")

    def streamWriter(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a stream."""
        self.writer(schema, overwrite)


class BatchOnly(ReadOnly):
    """Data source of files without streaming."""

    def streamReader(self, schema: Any) -> NoReturn:
        """Refuse a stream."""
        raise ValueError(
            f"{self.name()} reads files as a batch, not as a stream: use spark.read, "
            "or read the topic by letterhead-kafka or letterhead-iggy"
        )
