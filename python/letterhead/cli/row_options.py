"""Options of commands that process a column: what to do with bad rows, how many to read, and where to print them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypedDict

from letterhead._arrow_types import OnError
from letterhead._error_policies import counting_policy
from letterhead.cli.exits import Failure
from letterhead.cli.formats import ReadArguments
from letterhead.cli.render import ROWS_ON_SCREEN
from letterhead.cli.row_format import Form, RowFormat
from letterhead.operations import DecodeOptions

__all__ = ["ErrorOptions", "RowOptions"]


class ErrorOptions(TypedDict):
    """The options of a reader for data that cannot be read."""

    errors: OnError
    error_column: str


class RowOptions(NamedTuple):
    """How to process rows: what to do with bad ones, how many to read, and where to print them."""

    errors: OnError
    error_column: str
    limit: int | None
    out: Path | None
    json: bool
    everything: bool
    epoch_ms: bool = False

    def row_format(self, numbers: str | None = None) -> RowFormat:
        """Return how and where rows are written."""
        return RowFormat(Form.JSON if self.json else None, self.out, self.epoch_ms, self.everything, numbers)

    @property
    def error_options(self) -> ErrorOptions:
        """The error options of a reader: with --errors null, too, errors are a column, so that bad rows can be counted."""
        return {"errors": counting_policy(self.errors), "error_column": self.error_column}

    def read_options(self, reading: ReadArguments) -> DecodeOptions:
        """Return the options of an operation that reads a column."""
        return DecodeOptions(**self.error_options, **reading)

    @property
    def on_screen(self) -> bool:
        """Whether rows are shown in a table."""
        return not self.json and self.out is None

    def validate(self) -> None:
        """Refuse contradicting options."""
        if self.json and self.out is not None:
            raise Failure("--json and --out exclude each other: write to a file that ends in .jsonl")

    def with_screen_limit(self) -> RowOptions:
        """Return the options with the default limit of rows, if they are shown on a screen without a limit."""
        return self._replace(limit=ROWS_ON_SCREEN) if self.limit is None and self.on_screen else self

    def check_column(self, column: str | None) -> None:
        """Refuse --error-column where there is no such column."""
        if self.error_column != "error" and (column is None or self.errors != "column"):
            raise Failure("--error-column needs --column and --errors column: it names the column of errors")
