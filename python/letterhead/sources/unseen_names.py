"""Notice names of headers that no row has, because they may be misspelt: :class:`UnseenNames`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from letterhead._error_policies import has_error_column
from letterhead._formatting import printable, quote
from letterhead.errors import LetterheadError
from letterhead.fields import columns_of

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._row_request import RowRequest
    from letterhead.fields import NativeKey

__all__ = ["EmptyColumns", "SearchedSource", "UnseenNames", "describe_unmatched"]


class SearchedSource(Protocol):
    """Source that can search for the headers of a condition."""

    @property
    def noun(self) -> str:
        """Noun for counts of rows."""

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions."""

    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return the header keys in the condition that no row has, after all rows were read."""


class EmptyColumns:
    """Typed headers without a value in any row so far."""

    def __init__(self, request: RowRequest) -> None:
        self._types: Mapping[str, Any] = columns_of(request.headers) if request.headers else {}
        self._empty = set(self._types)
        self._error_column = request.error_column if has_error_column(request.errors) else None
        self._has_rows = self._has_errors = False
        self._names_types = request.errors == "null"  # a column can be empty because of its type
        # If only the last rows are read, earlier rows may have the headers.
        self._applies = bool(self._types) and request.last is None

    def note(self, batch: pa.RecordBatch) -> None:
        """Note the columns of a batch that have a value."""
        if not self._applies or not len(batch):
            return
        self._has_rows = True
        self._empty -= {name for name in self._empty if batch.column(name).null_count < len(batch)}
        if self._error_column is not None:
            self._has_errors |= batch.column(self._error_column).null_count < len(batch)

    def remarks(self, noun: str) -> list[str]:
        """Return a remark about each column, after all rows were noted; none if rows could not be read."""
        if not self._empty or not self._has_rows or self._has_errors:
            return []
        # A message has only some of a convention's headers.
        of_profile = self._columns_of_profiles()
        remarks = []
        if of_profile and of_profile <= self._empty:
            remarks.append(f"none of these {noun}s has a value of a header of the profile")
        names = sorted(self._empty - of_profile)
        return remarks + [
            f"none of these {noun}s has a value of the header {self._header_text(name)}" for name in names
        ]

    def _header_text(self, name: str) -> str:
        spec = self._types[name]
        key = getattr(spec, "key", None)
        text = _key_text(name if key is None else key)
        return f"{text} as {getattr(spec, 'type', spec)}" if self._names_types else text

    def _columns_of_profiles(self) -> set[str]:
        from letterhead.conventions.profiles import PROFILES

        fields = {name: spec for name, spec in self._types.items() if not isinstance(spec, str)}
        if not fields:
            return set()
        known = [profile.columns() for profile in PROFILES.values()]
        return {name for name, spec in fields.items() if any(columns.get(name) == spec for columns in known)}


def _key_text(key: object) -> str:
    return quote(key) if isinstance(key, str) else printable(str(key))


def describe_unmatched(source: SearchedSource, request: RowRequest, *, has_selected: bool) -> list[str]:
    """Return a remark about each header in the condition that no row has, after all rows were read."""
    # A second read would start elsewhere if the offsets of a group were committed.
    if request.where is None or request.follow or request.commit_group is not None:
        return []
    try:
        keys = source.unmatched_keys(request, has_selected=has_selected)
    except (LetterheadError, OSError):  # the rows were read; a server may have become unreachable
        return []
    fields = [*source.fields]
    remarks = []
    for key in keys:
        name = _key_text(key)
        hint = (
            f"the field {name} is written without headers[...] and a type"
            if key in fields
            else f"names of fields are {', '.join(fields)}"
        )
        remarks.append(f"where=: no record had a header {name}; {hint}")
    return remarks


class UnseenNames:
    """Observer of a reader that reports the names once all rows were read."""

    def __init__(self, source: SearchedSource, request: RowRequest, report: Callable[[str], object]) -> None:
        self._source = source
        self._request = request
        self._report = report
        self._columns = EmptyColumns(request)
        self._has_selected = False

    def note(self, batch: pa.RecordBatch) -> None:
        """Note a batch."""
        self._columns.note(batch)
        # Rows with errors do not satisfy the condition.
        self._has_selected |= len(batch) > 0 and self._request.errors == "raise"

    def end(self) -> None:
        """Report the names."""
        remarks = describe_unmatched(self._source, self._request, has_selected=self._has_selected)
        for remark in remarks + self._columns.remarks(self._source.noun):
            self._report(remark)
