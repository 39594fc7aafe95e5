"""`letterhead sql`: print Spark SQL expressions that read headers."""

from __future__ import annotations

from typing import Annotated

from letterhead.cli.completion import complete_formats
from letterhead.cli.exits import OK, Failure, usage_errors
from letterhead.cli.options import ErrorColumn, Errors, option
from letterhead.cli.row_options import ERROR_COLUMN
from letterhead.cli.sources.options import header_columns
from letterhead.operations import DecodeOptions


def sql_command(
    headers: Annotated[
        str, option("--headers", "Headers to read, as in tenant,retry:int32 or id=header-id:uuid.", "NAME:TYPE,...")
    ],
    column: Annotated[str, option("--column -c", "The column of headers, as in SQL.", "NAME")] = "headers",
    format: Annotated[
        str, option("--format -f", "Format of the list of headers.", "FORMAT", autocompletion=complete_formats)
    ] = "kafka",
    errors: Annotated[
        Errors,
        option("--errors", "End the query at a value that cannot be read, make it null, or add a column of errors."),
    ] = Errors.raise_,
    error_column: ErrorColumn = ERROR_COLUMN,
) -> int:
    """Print expressions of Spark SQL that read headers, for views and models of dbt.

    Each line is an item of a SELECT list. Neither the session nor its executors
    need letterhead. The command needs pyspark, and prints SQL for the installed
    version of Spark.

    \b
    Examples:
      letterhead sql --headers tenant,amount_cents:int64
      letterhead sql --headers id=header-id:uuid -c t.headers --errors null
    """
    try:
        from letterhead.spark.header_sql import select_items
    except ImportError as error:
        raise Failure(str(error)) from error
    with usage_errors():
        columns = header_columns(headers) or {}
        options = DecodeOptions(errors=errors.value, error_column=error_column)
        items = select_items(column, columns, format, options)
    print(",\n".join(items))
    return OK
