"""Base classes of data sources. Errors for unsupported operations name a remedy, which Spark's own errors lack."""

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
    """A data source of Arrow batches, whose format in Spark is ``format_name``."""

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
    """A data source without writers; ``instead`` names the remedy."""

    instead: str

    def writer(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a batch."""
        raise ValueError(f"{self.name()} only reads: {self.instead}")

    def streamWriter(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a stream."""
        self.writer(schema, overwrite)


class BatchOnly(ReadOnly):
    """A data source of files, which are read once."""

    def streamReader(self, schema: Any) -> NoReturn:
        """Refuse a stream."""
        raise ValueError(
            f"{self.name()} reads files as a batch, not as a stream: use spark.read, "
            "or read the topic by letterhead-kafka or letterhead-iggy"
        )
