"""Conditions on the rows of tables, which are evaluated on columns: :class:`ColumnFilter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from letterhead import _native
from letterhead._arrow_types import is_list, to_pyarrow
from letterhead.errors import DecodeError, replaced
from letterhead.where.condition_filter import ConditionFilter
from letterhead.where.program import RecordField, ResolvedTest, truth

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns, ColumnSpec
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["ColumnFilter", "record_field"]


class ColumnFilter(ConditionFilter):
    """Selects the rows of record batches for which a condition on columns, and on headers, is true.

    Parameters
    ----------
    where : Where
        The condition.
    fields : mapping of str to RecordField
        Columns of the batches and their types.
    headers : Columns or None
        Typed columns of headers, by whose names the condition can test them.
    format : str
        The format of the column ``headers``.
    errors : {"raise", "null", "column"}, default "raise"
        What happens to a row whose headers cannot be read.
    limits : Limits, optional
        Limits on the headers that are read.
    """

    def __init__(
        self,
        where: Where,
        fields: Mapping[str, RecordField],
        headers: Columns | None,
        format: str,
        *,
        errors: OnError = "raise",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(where, {name: field for name, field in fields.items() if name != "headers"}, headers)
        self._format = format
        self._errors = errors
        self._limits = limits

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return the selected rows, and with ``errors="column"`` their errors in reading the condition's headers.

        Only rows that columns do not exclude have errors. They are raised, or with ``errors="null"`` the header is null; with
        ``errors="column"``, a row whose errors leave the condition undecided is returned, too.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        unknown = pa.nulls(len(batch), pa.bool_())

        def by_columns(test: ResolvedTest) -> pa.BooleanArray:
            return _truths(test, batch.column(test.operand)) if isinstance(test.operand, str) else unknown

        selected = self._filter.decide_columns(by_columns, len(batch))
        if not self._specs:
            return batch.filter(selected), None
        rest = batch.filter(pc.fill_null(selected, True))
        values = self._header_values(rest.column("headers"), self._specs, self._errors)
        errors = values.pop("error", None)
        if len(rest):
            unseen = self._note_seen([name for name, column in values.items() if _has_value(column)])
            if unseen:
                found = self._header_values(rest.column("headers"), unseen, "null")
                self._note_seen([name for name, column in found.items() if _has_value(column)])

        def by_everything(test: ResolvedTest) -> pa.BooleanArray:
            if isinstance(test.operand, str):
                return _truths(test, rest.column(test.operand))
            return _truths(test, values[self._names[test.operand]])

        is_true = pc.fill_null(self._filter.decide_columns(by_everything, len(rest)), False)
        if errors is None or errors.null_count == len(errors):
            return rest.filter(is_true), None if errors is None else errors.filter(is_true)
        kept = pc.or_(is_true, errors.is_valid())
        decided = is_true.filter(kept).to_pylist()
        attributed = [
            found and [detail | {"column": None if is_decided else "where"} for detail in found]
            for found, is_decided in zip(errors.filter(kept).to_pylist(), decided, strict=True)
        ]
        return rest.filter(kept), pa.array(attributed, errors.type)

    def _header_values(self, headers: pa.Array, specs: list[ColumnSpec], errors: OnError) -> dict[str, pa.Array]:
        # Not by the operation Select: the specs may have types that only conditions have.
        options: Any = {"header_columns": specs, "limits": self._limits, "errors": errors}
        try:
            column = to_pyarrow(_native.apply("select", headers, self._format, **options))
        except DecodeError as error:
            raise replaced(error, column=error.column and "where", row=None) from None
        return dict(zip(column.type.names, column.flatten(), strict=True))


def _has_value(column: pa.Array) -> bool:
    return len(column.flatten() if is_list(column.type) else column.drop_null()) > 0


def _truths(test: ResolvedTest, column: pa.Array) -> pa.BooleanArray:
    """Return the truth of a test of every value, as :func:`letterhead.where.program.truth` returns it of one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if test.name in ("is_null", "exists") and not test.quantifier:
        return pc.is_null(column) if test.name == "is_null" else pc.is_valid(column)
    column = _numbers(column)
    evaluate = None if test.quantifier else _evaluator(test, column.type)
    if evaluate is None:
        return pa.array([truth(test, value) for value in column.to_pylist()], pa.bool_())
    return evaluate(column)


def _evaluator(test: ResolvedTest, type: pa.DataType) -> Callable[[pa.Array], pa.BooleanArray] | None:
    """Return the function that tests a column, None for a type or a test that is evaluated value by value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_integer(type):
        wide = pa.uint64() if types.is_uint64(type) else pa.int64()
        return lambda column: _any_literal(test, column.cast(wide), _compare_integers)
    if types.is_floating(type):
        return lambda column: _any_literal(test, column.cast(pa.float64()), _compare)
    is_text = types.is_string(type) or types.is_large_string(type)
    if not (is_text or types.is_binary(type) or types.is_large_binary(type)):
        return None
    if test.name == "matches":
        return None
    if test.name == "starts_with":
        return lambda column: pc.starts_with(column, pattern=test.literals[0])
    if test.name == "contains":
        return lambda column: pc.match_substring(column, pattern=test.literals[0])
    return lambda column: _any_literal(test, column, _compare)


def _any_literal(test: ResolvedTest, column: pa.Array, compare: Callable[..., pa.BooleanArray]) -> pa.BooleanArray:
    """Compare a column with the literal of a test, or with each one of a list."""
    import pyarrow.compute as pc

    if test.name != "in":
        return compare(test.name, column, test.literals[0])
    result = None
    for literal in test.literals:
        equal = compare("==", column, literal)
        result = equal if result is None else pc.or_(result, equal)
    return result


def _compare(name: str, column: pa.Array, literal: Any) -> pa.BooleanArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    functions = {
        "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
    }  # fmt: skip
    return functions[name](column, pa.scalar(literal, column.type))


def _compare_integers(name: str, column: pa.Array, literal: int) -> pa.BooleanArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    bits = column.type.bit_width
    low, high = (0, 1 << bits) if pa.types.is_unsigned_integer(column.type) else (-(1 << bits - 1), 1 << bits - 1)
    if low <= literal < high:
        return _compare(name, column, literal)
    # A literal beyond all values of the type compares alike with each.
    outcome = name == "!=" or ((name in ("<", "<=")) == (literal >= high) and name != "==")
    return pc.if_else(pc.is_valid(column), outcome, pa.scalar(None, pa.bool_()))


def _numbers(column: pa.Array) -> pa.Array:
    """Return timestamps as numbers, in the unit that their field has in a condition."""
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type):
        return column
    unit = "us" if column.type.unit in ("us", "ns") else "ms"
    return column.cast(pa.timestamp(unit, column.type.tz), safe=False).cast(pa.int64())


def record_field(type: pa.DataType) -> RecordField | None:
    """Return the type of a column in a condition; None if it has none."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(type):
        return RecordField("timestamp" if type.unit in ("us", "ns") else "timestamp_ms")
    for name, matches in (
        ("int64", types.is_integer), ("float64", types.is_floating), ("bool", types.is_boolean), ("string", types.is_string),
        ("string", types.is_large_string), ("binary", types.is_binary), ("binary", types.is_large_binary),
    ):  # fmt: skip
        if matches(type):
            return RecordField(name)
    return None
