"""Base classes of data sources that do not write or stream; their errors name a remedy, which Spark's own do not."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["BatchOnly", "ReadOnly"]


class ReadOnly:
    """A data source without writers; ``instead`` names the remedy."""

    instead: str

    def writer(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a batch."""
        raise ValueError(f"{self.name()} only reads: {self.instead}")  # type: ignore[attr-defined]

    def streamWriter(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse to write a stream."""
        self.writer(schema, overwrite)


class BatchOnly(ReadOnly):
    """A data source of files, which are read once."""

    def streamReader(self, schema: Any) -> NoReturn:
        """Refuse a stream."""
        raise ValueError(
            f"{self.name()} reads files as a batch, not as a stream: use spark.read, "  # type: ignore[attr-defined]
            "or read the topic by letterhead-kafka or letterhead-iggy"
        )
