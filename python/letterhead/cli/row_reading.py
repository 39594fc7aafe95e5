"""Read, write or count the rows of sources, one after the other, and report errors: :class:`RowReading`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letterhead._arrow_types import header_lists_type
from letterhead._formatting import printable
from letterhead._row_request import RowRequest
from letterhead.cli.counts import Counts
from letterhead.cli.edits import edit_of, edit_rows, warn_of_unseen
from letterhead.cli.exits import BAD_DATA, UNREADABLE, Failure, as_options
from letterhead.cli.printed_rows import ReadErrors, leaves_out, mask_printed, open_last_printed
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, note, style, warn
from letterhead.cli.row_counts import RowCounts
from letterhead.cli.row_format import STANDARD_OUTPUT, Form, RowFormat, RowWriter, form_of
from letterhead.cli.row_writers import open_writer
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import check_request, open_rows, print_remarks, report_findings
from letterhead.errors import HeaderError, copy_error
from letterhead.fields import columns_of
from letterhead.sources.base import LogSource, Source
from letterhead.sources.unseen_names import EmptyColumns, describe_unmatched

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader

__all__ = ["RowReading"]

VALID = "ok"
"""Value of column `checksum` when it matches."""

MAX_ERROR_LINES = 20
"""Maximum number of errors of dropped rows that are printed; the rest are counted."""

PLACES = ("topic", "partition", "offset", "task", "key")
"""Columns that identify a row."""


class SourceRows:
    """Rows of a source. Columns that only the command needs are hidden from the writer."""

    def __init__(self, source: Source, request: RowRequest, errors: ReadErrors, *, are_edited: bool) -> None:
        self.source = source
        self._are_edited = are_edited
        self._error_column = request.error_column
        with print_remarks():
            columns = source.chosen_columns(request)
            known = {*source.columns(request)} - {*columns, *columns_of(request.headers or {})}
        counts_printed = request.last is not None and not (request.follow or request.commit_group)
        counts_printed = counts_printed and leaves_out(errors, request)
        wanted = {ReadErrors.raise_: (), ReadErrors.skip: PLACES}.get(
            errors, PLACES[:3] if counts_printed else ("offset",)
        )
        self.hidden = [name for name in wanted if name in known and request.view != "batches"]
        request = replace(request, columns=(*columns, *self.hidden))
        if counts_printed and request.last is not None:
            name = request.error_column
            self._reader = open_last_printed(
                source, request, request.last, lambda rows: mask_printed(errors, rows[name])
            )
        else:
            self._reader = open_rows(source, request)
        self._committing: Any = self._reader if request.commit_group is not None else None
        left_out = {*self.hidden, *([request.error_column] if errors in (ReadErrors.null, ReadErrors.skip) else [])}
        self.names = [name for name in self._reader.schema.names if name not in left_out]

    @property
    def reader(self) -> Reader:
        """Reader of all columns."""
        return self._reader

    @property
    def schema(self) -> pa.Schema:
        """Columns for the writer."""
        import pyarrow as pa

        fields = [self._reader.schema.field(name) for name in self.names]
        if self._are_edited:
            # Headers of other shapes are edited as lists.
            fields = [
                field.with_type(header_lists_type(field.type)) if field.name == "headers" else field for field in fields
            ]
        return pa.schema(fields)

    def unreadable_batches(self, batch: pa.RecordBatch) -> int:
        """Count the rows that report unreadable batches: they have an error but no offset."""
        if not isinstance(self.source, LogSource) or not {"offset", self._error_column} <= {*batch.schema.names}:
            return 0
        import pyarrow.compute as pc

        unreadable = pc.and_(batch.column(self._error_column).is_valid(), batch.column("offset").is_null())
        count: int = pc.sum(unreadable).as_py() or 0
        return count

    def note_used(self, rows: int) -> None:
        """Note that the first rows of the last batch were printed, for committing their offsets."""
        if self._committing is not None:
            self._committing.note_used(rows)

    def close_after(self, rows: int) -> None:
        """Commit the offsets of the first rows of the last batch, if there is a group."""
        if self._committing is not None:
            with reading_errors():
                self._committing.close_after(rows)


class RowReading:
    """Reads the rows of sources, one source after the other, up to a limit, and reports errors."""

    def __init__(
        self,
        sources: Sequence[Source],
        request: RowRequest,
        errors: ReadErrors,
        limit: int | None,
        edits: Sequence[str] = (),
    ) -> None:
        self._request = replace(request, among_others=len(sources) > 1)
        check_request(sources, self._request)
        self._errors = errors
        self._limit = limit
        noun = sources[0].noun if len({source.noun for source in sources}) == 1 else "row"
        self._tally = RowCounts("batch" if request.view == "batches" else noun)
        self._left_out_batches = 0
        self._error_lines = 0
        self._written = 0  # rows so far, including reports of unreadable batches
        self._used = 0  # rows of the last batch, up to the last printed one
        self._is_counting = False
        self._connected = not request.follow
        self._columns = EmptyColumns(request)
        for source in sources:
            if request.follow and isinstance(source, LogSource):
                source.when_connected = self._note_connected
        self._sources = [SourceRows(source, self._request, errors, are_edited=bool(edits)) for source in sources]
        with reading_errors():
            self._edits = [edit_of(rows.reader.schema, edits) for rows in self._sources] if edits else []

    def write(self, format: RowFormat) -> int:
        """Write the rows, and return the exit code."""
        form = form_of(format)
        prints = format.target in (None, STANDARD_OUTPUT)
        self._check_target(format.target)
        first = self._sources[0]
        if not (prints and form in (Form.TABLE, Form.JSON)):
            for rows in self._sources:
                if not rows.schema.equals(first.schema):
                    raise Failure(_difference(rows, first))
        with ExitStack() as stack:
            writer: RowWriter | None = None
            for number, rows in enumerate(self._sources):
                if writer is None or not rows.schema.equals(self._sources[number - 1].schema):
                    stack.close()
                    writer = stack.enter_context(open_writer(rows.schema, format))
                self._write_source(number, writer, prints=prints)
                if self._tally.more:
                    break
        tally = self._tally
        if form is Form.TABLE:
            print(style(tally.summary(None), "dim", sys.stdout))
        elif not prints:
            note(f"{tally.counted} written to {format.target}")
        return self._finish()

    def count(self, counts: Counts, format: RowFormat, limit: int | None) -> int:
        """Write counts of the rows, and return the exit code."""
        self._check_target(format.target)
        self._is_counting = True
        for number in range(len(self._sources)):
            with counts.remedies():
                for batch in self._batches(number, prints=False):
                    counts.add(batch)
        batch = counts.result(limit)
        with open_writer(batch.schema, format) as writer:
            writer.write(batch)
        if form_of(format) is Form.TABLE:
            print(style(counts.summary(self._tally.noun), "dim", sys.stdout))
        elif format.target not in (None, STANDARD_OUTPUT):
            note(f"{counts.summary(self._tally.noun)} written to {format.target}")
        return self._finish()

    def _check_target(self, target: Path | None) -> None:
        """Raise Failure if --out names a file that is also a source."""
        for rows in self._sources:
            name = rows.source.name
            if target is not None and target.is_file() and Path(name).is_file() and target.samefile(name):
                raise Failure("--out is the file that is read: give another name")

    def _write_source(self, number: int, writer: RowWriter, *, prints: bool) -> None:
        try:
            for batch in self._batches(number, prints=prints):
                writer.write(batch)
                if self._request.follow or self._request.commit_group is not None:
                    writer.flush()  # before their offsets are committed
                    self._sources[number].note_used(self._used)
        except KeyboardInterrupt:
            if not self._request.follow:
                raise
            # Ctrl-C is the normal end of --follow: keep the rows written so far.
            if not self._connected:
                raise Failure(
                    f"interrupted before {self._sources[number].source.name} had answered", UNREADABLE
                ) from None

    def _batches(self, number: int, *, prints: bool) -> Iterator[pa.RecordBatch]:
        """Read one source, count its rows, and show the progress."""
        tally, rows, limit = self._tally, self._sources[number], self._limit
        source, reader = rows.source, rows.reader
        total = None if limit is None else limit - self._written
        with (
            progress(total, f"reading {source.name}", prints=prints, noun=tally.noun, source=source) as advance,
            reader,
        ):
            while True:
                try:
                    with reading_errors():
                        batch = next(reader, None)
                except HeaderError as error:
                    if limit is not None and self._written >= limit:
                        tally.more = True  # the error is beyond the limit
                        break
                    if len(self._sources) == 1 or error.topic is not None:
                        raise
                    raise copy_error(error, f"{error.message} in {source.name}") from None
                if batch is None:
                    break
                self._columns.note(batch)
                if self._edits:
                    with reading_errors():
                        batch = edit_rows(batch, self._edits[number], self._errors_of(batch))
                batch = self._within_limit(batch)
                self._used = used = len(batch)
                batch = self._printed(rows, batch)
                self._count_invalid(batch)
                unreadable = rows.unreadable_batches(batch)
                tally.rows += len(batch) - unreadable
                self._written += len(batch)
                if self._is_counting and unreadable:
                    batch = batch.filter(batch.column("offset").is_valid())
                if len(batch):
                    yield batch.select(rows.names)
                advance(len(batch))
                if tally.more or (limit is not None and self._request.follow and self._written >= limit):
                    rows.close_after(used)
                    return
        with reading_errors():
            remarks = describe_unmatched(source, self._request, has_selected=False)
        for remark in remarks:
            warn(as_options(remark))

    def _errors_of(self, batch: pa.RecordBatch) -> pa.Array | None:
        return None if self._errors is ReadErrors.raise_ else batch.column(self._request.error_column)

    def _within_limit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch up to the last printed one; unreadable rows after it are not counted."""
        if self._limit is None:
            return batch
        import pyarrow.compute as pc

        left, mask = self._limit - self._written, self._mask(batch)
        if mask is None:
            self._tally.more |= len(batch) > left
            return batch.slice(0, left)
        printed = pc.indices_nonzero(mask)
        if len(printed) < left:
            return batch
        end = printed[left - 1].as_py() + 1 if left else 0
        # With `--errors only`, the remaining rows of the batch are readable and not printed: reading continues until an
        # error.
        self._tally.more |= len(printed) > left or (end < len(batch) and self._errors is not ReadErrors.only)
        return batch.slice(0, end) if self._tally.more else batch

    def _mask(self, batch: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return a mask of the printed rows; None for all."""
        if not leaves_out(self._errors, self._request):
            return None
        return mask_printed(self._errors, batch.column(self._request.error_column))

    def _printed(self, rows: SourceRows, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count the errors, and return the rows that --errors prints; report errors of skipped rows."""
        if self._errors is ReadErrors.raise_:
            return batch
        import pyarrow.compute as pc

        tally, errors = self._tally, batch.column(self._request.error_column)
        tally.add_errors(errors)
        tally.unreadable += rows.unreadable_batches(batch)
        if self._errors is ReadErrors.skip:
            for row in pc.indices_nonzero(errors.is_valid()).to_pylist()[: MAX_ERROR_LINES - self._error_lines]:
                warn(_describe_error(batch, row, self._request.error_column))
                self._error_lines += 1
        mask = self._mask(batch)
        if mask is None:
            return batch
        printed = batch.filter(mask)
        left_out = batch.filter(pc.invert(mask))
        batches = rows.unreadable_batches(left_out)
        self._left_out_batches += batches
        tally.left_out += len(left_out) - batches
        return printed

    def _count_invalid(self, batch: pa.RecordBatch) -> None:
        """Count the batches of a log with an invalid checksum or content."""
        if self._request.view == "batches" and "checksum" in batch.schema.names:
            codes = [code for code in batch.column("checksum").to_pylist() if code != VALID]
            self._tally.bad += len(codes)
            self._tally.codes.update(codes)

    def _note_connected(self, partitions: int) -> None:
        self._connected = True
        source = self._sources[0].source
        count = count_text(partitions, "partition")
        note(f"connected to {source.name}, {count}: waiting for {self._tally.noun}s until Ctrl-C")

    def _note_empty_range(self) -> None:
        """Note that --start and --end exclude all rows, because they may be wrong."""
        request = self._request
        is_bounded = request.start != "earliest" or request.end != "latest"
        if is_bounded and not self._written and request.where is None and self._limit != 0 and not request.follow:
            note(
                f"no {self._tally.noun}s from --start {_point_text(request.start)} to --end {_point_text(request.end)}"
            )

    def _finish(self) -> int:
        self._note_empty_range()
        tally = self._tally
        if not (tally.more or tally.bad or self._request.follow):
            for remark in self._columns.remarks(tally.noun):
                warn(remark)
        edited = warn_of_unseen(self._edits, tally.noun)
        if self._errors is ReadErrors.skip and tally.bad:
            left_out = [count_text(self._left_out_batches, "batch", "batches")] if self._left_out_batches else []
            left_out += [count_text(tally.left_out, tally.noun)] if tally.left_out else []
            it = "it" if tally.left_out + self._left_out_batches == 1 else "they"
            warn(f"{' and '.join(left_out)} left out, as {it} could not be read")
            code = BAD_DATA
        else:
            code = tally.report("decode", is_null=self._errors is ReadErrors.null)
        return max([code, edited, *(report_findings(rows.source) for rows in self._sources)])


def _difference(rows: SourceRows, first: SourceRows) -> str:
    """Describe how the columns of two sources differ."""
    if rows.schema.names != first.schema.names:
        return f"{rows.source.name} has other columns than {first.source.name}: name common ones by --columns"
    types = ((name, rows.schema.field(name).type, first.schema.field(name).type) for name in rows.schema.names)
    name, type, other = next(differing for differing in types if differing[1] != differing[2])
    return (
        f"column {printable(name)} is {type} in {rows.source.name}, and {other} in {first.source.name}: --json writes both, or "
        "leave the column out by --columns"
    )


def _point_text(spec: OffsetSpec) -> str:
    """Return a point in the syntax of --start and --end."""
    if isinstance(spec, Mapping):
        return ",".join(f"{partition}={_point_text(point)}" for partition, point in spec.items())
    return str(spec)


def _describe_error(batch: pa.RecordBatch, row: int, error_column: str) -> str:
    """Return the first error of a row, with the location of the row if columns contain it."""
    error: Any = batch.column(error_column)[row].as_py()[0]
    position = {name: batch.column(name)[row].as_py() for name in PLACES if batch.schema.names.count(name) == 1}
    if position.get("offset") is None and position.get("key") is None:
        return str(error["message"])
    if position.get("offset") is not None:
        position.pop("key", None)
    named = ", ".join(
        f"{name} {value.hex() if isinstance(value, bytes) else value}"
        for name, value in position.items()
        if value is not None
    )
    byte = "" if error["byte_offset"] is None else f", byte {error['byte_offset']}"
    return f"{named}: {error['message']} ({error['code']}{byte})"
