"""Output options of a command as :class:`RowFormat`, and the base class of writers."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from letterhead._table_writers import COMPRESSION, FORMS
from letterhead.cli.exits import Failure
from letterhead.cli.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["STANDARD_OUTPUT", "Form", "RowFormat", "RowWriter", "form_of"]

Form = StrEnum("Form", ["TABLE", "JSON", "CSV", "PARQUET", "ARROW", "ARROW_STREAM"])

ENDINGS = {**{ending: Form(form) for ending, form in FORMS.items()}, ".csv": Form.CSV}


class RowFormat(NamedTuple):
    """Format of written rows; the default form follows from the file extension, or is a table."""

    form: Form | None = None
    target: Path | None = None
    epoch_ms: bool = False
    everything: bool = False
    # Name of a column of row numbers in tables.
    numbers: str | None = None


def form_of(format: RowFormat) -> Form:
    """Return the form in the options, or the form that the file extension implies."""
    if format.form is not None or format.target is None:
        return format.form or Form.TABLE
    if format.target == STANDARD_OUTPUT:
        return Form.ARROW_STREAM
    name = Path(format.target.name.lower())
    compressed = name.suffix in COMPRESSION
    form = ENDINGS.get(Path(name.stem).suffix if compressed else name.suffix)
    if form is None or (compressed and form not in (Form.JSON, Form.CSV)):
        raise Failure(
            f"cannot tell what to write from the name of {format.target}: end it with .parquet, .arrow, .jsonl or .csv "
            "(.jsonl and .csv also with .gz or .zst)"
        )
    return form


class RowWriter(ABC):
    """Writes record batches of one schema. Leaving the context completes the output, or removes it after an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""

    def flush(self) -> None:
        """Wait until the rows are written."""
        sys.stdout.flush()

    @abstractmethod
    def close(self) -> None:
        """Complete the output."""

    @abstractmethod
    def abort(self) -> None:
        """Remove the incomplete output, except bytes on standard output."""
