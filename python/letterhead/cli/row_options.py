"""Options of commands that process a column: the policy for bad rows, the number of rows, and the destination."""

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

__all__ = ["ERROR_COLUMN", "ErrorOptions", "RowOptions"]

ERROR_COLUMN = "error"
"""Default name of the column of errors."""


class ErrorOptions(TypedDict):
    """Options of a reader for invalid data."""

    errors: OnError
    error_column: str


class RowOptions(NamedTuple):
    """Options for rows: the policy for bad rows, the number to read, and the destination."""

    errors: OnError
    error_column: str
    limit: int | None
    out: Path | None
    json: bool
    everything: bool
    epoch_ms: bool = False

    def row_format(self, numbers: str | None = None) -> RowFormat:
        """Return the options for writing rows."""
        return RowFormat(Form.JSON if self.json else None, self.out, self.epoch_ms, self.everything, numbers)

    @property
    def error_options(self) -> ErrorOptions:
        """Error options of a reader. Even --errors null uses an error column, which is needed to count bad rows."""
        return {"errors": counting_policy(self.errors), "error_column": self.error_column}

    def read_options(self, reading: ReadArguments) -> DecodeOptions:
        """Return the options of an operation that reads a column."""
        return DecodeOptions(**self.error_options, **reading)

    @property
    def on_screen(self) -> bool:
        """Whether rows are shown in a table."""
        return not self.json and self.out is None

    def validate(self) -> None:
        """Reject contradictory options."""
        if self.json and self.out is not None:
            raise Failure("--json and --out exclude each other: write to a file that ends in .jsonl")

    def with_screen_limit(self) -> RowOptions:
        """Return the options, with the default limit of rows if a terminal would show rows without a limit."""
        return self._replace(limit=ROWS_ON_SCREEN) if self.limit is None and self.on_screen else self

    def check_column(self, column: str | None) -> None:
        """Reject --error-column if there is no such column."""
        if self.error_column != ERROR_COLUMN and (column is None or self.errors != "column"):
            raise Failure("--error-column needs --column and --errors column: it names the column of errors")
