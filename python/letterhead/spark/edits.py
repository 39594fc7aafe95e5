"""Drop, keep, rename and insert headers in a DataFrame, with Spark's own expressions: :func:`edit_headers`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DecimalType, StringType, StructField, TimestampNTZType

from letterhead._header_edits import Constant, Function, HeaderEdit, Hmac, Lit, Mask, NewValue
from letterhead._invariants import require
from letterhead._names import check_name, unknown_name
from letterhead.spark import sql_text
from letterhead.spark.checks import case_when, raise_expression, value_unless_failed
from letterhead.spark.frame import (
    HEADERS,
    Input,
    check_frame,
    check_replaced,
    check_str,
    find_unused_name,
    is_column,
    name_of_result,
    quoted_column,
)
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import block_pushdown, is_sail, not_on_sail, write_values
from letterhead.spark.schemas import ddl
from letterhead.spark.steps import run_step
from letterhead.spark.writing import GIVE_ZONE, writer, written_from
from letterhead.types import is_only_read, split_type, type_name
from letterhead.values import Value

if TYPE_CHECKING:
    from pyspark.sql import Observation

    Keys: TypeAlias = Sequence[str] | Callable[[Column], Column]
    Renames: TypeAlias = Mapping[str, str] | Callable[[Column], Column]
    Replacements: TypeAlias = Mapping[str, str | bytes | Hmac | Lit | Callable[[Column], Column]]
    Added: TypeAlias = str | bytes | Lit | Column | tuple[str | Column, str] | None

__all__ = ["edit_headers"]


def edit_headers(
    df: DataFrame,
    *,
    column: str | Column = "headers",
    into: str | None = None,
    only: Keys | None = None,
    drop: Keys | None = None,
    rename: Renames | None = None,
    replace: Replacements | None = None,
    set: Mapping[str, Added] | None = None,
    append: Mapping[str, Added] | Sequence[tuple[str, Added]] | None = None,
    ignore_case: bool = False,
    nulls: Literal["keep", "skip"] = "keep",
    truncate: bool = False,
    observe: str | Observation | None = None,
) -> DataFrame:
    """Drop, keep, rename, mask, set and append headers; all others are unchanged.

    Use it to mask confidential values before messages leave a system, and instead of Connect's transforms DropHeaders,
    InsertHeader and HeaderFrom. Parameters name headers by their keys before the edit, except ``append``. Order,
    repeated headers and null values of all other headers are kept. It is one expression of Spark SQL: it runs no
    Python, needs nothing installed on executors, and accepts streaming DataFrames. On Sail Arrow UDFs write the values
    of columns.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    column : str or Column, default "headers"
        The column of headers, ``array<struct<key:string,value:binary>>``, as Spark's Kafka source returns it with
        ``includeHeaders``, and as its sink accepts it.
    into : str, optional
        Name of the new column; by default it replaces ``column``. Required if ``column`` is a Column.
    only : sequence of str, or function of Column, optional
        Keys of the headers to keep, or a predicate of a key: ``lambda key: key.startswith("ce_")``.
    drop : sequence of str, or function of Column, optional
        Keys of the headers to drop, or a predicate of a key. All headers of a key are dropped.
    rename : mapping of str to str, or function of Column, optional
        New keys by old keys, applied at once, so that two can be swapped; or a function of the old key. A header renamed to
        an existing key becomes another header of that key.
    replace : mapping of str to mask or function of Column, optional
        New values for all headers with a key, at their positions: a function of the value, which is binary,
        that returns string or binary (``lambda v: F.sha2(v, 256)``); a mask, ``"hash"``, ``"redact"``, ``"last4"`` or
        :func:`letterhead.hmac`, as in :func:`letterhead.arrow.edit`; or bytes and :func:`letterhead.lit` for a constant.
        Null stays null, and no header is added.
    set : mapping of str to value, optional
        Values of headers that occur once in the result: the first header with the key gets the value, and the others are
        dropped. If no header has the key, one is appended.
    append : mapping or sequence of pairs, optional
        Headers to append, in order; pairs can repeat a key. Here and in ``set``, a value is the name of a column or a
        Column, of strings or binary; ``(column, type)`` for any other, with a type as in :func:`pack_headers`; or
        :func:`letterhead.lit`, bytes or ``None`` (null) for a constant. New headers are in this order: those of ``set``,
        then those of ``append``, each in the order of its mapping.
    ignore_case : bool, default False
        Whether ``only``, ``drop``, ``rename`` and ``replace`` ignore the case of the letters A to Z in keys.
    nulls : {"keep", "skip"}, default "keep"
        Whether null in a column becomes a header with a null value, or no header: then nothing is set or appended.
    truncate : bool, default False
        Whether to cut off digits of times and decimals that a type cannot hold: times are rounded toward the past,
        decimals toward zero. By default, such a value is an error.
    observe : str or Observation, optional
        Counts the headers of each key in ``drop`` and ``replace``, as :meth:`DataFrame.observe` does: a key with 0
        headers may be misspelt, and its values still visible.

    Returns
    -------
    DataFrame
        The DataFrame with edited headers. A replaced column of headers keeps its position. Null
        headers, as the Kafka source returns them for a message without headers, stay null unless something is appended.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or two of them contradict each other; when called, if the DataFrame lacks a column, or a
        type cannot be written from its column.

    Notes
    -----
    A value that its type cannot represent (``out_of_range``, ``bad_text``, ``value_not_utf8``) ends the query with an
    error that names the key. Filter such rows before: ``where("retry between -128 and 127")``.

    Examples
    --------
    >>> import letterhead as lh
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> edited = lhs.edit_headers(
    ...     orders,
    ...     drop=lambda key: key.startswith("ce_"),
    ...     rename={"retry": "attempt"},
    ...     replace={"tenant": lambda value: F.sha2(value, 256)},
    ...     append={"source_offset": ("offset", "int64"), "via": lh.lit("spark")},
    ... )
    >>> edited.selectExpr("transform(headers, h -> h.key) as keys").first().keys
    ['traceparent', 'tracestate', '__value_schema_id', 'tenant', 'attempt', 'amount_cents', 'weight_kg', 'source_offset', 'via']
    >>> edited.where(lhs.header("headers", "source_offset", "int64") == F.col("offset")).count()
    10000
    """
    check_frame(df, edit_headers)
    result_name = name_of_result(column, into)
    check_name("nulls value", nulls, ("keep", "skip"))
    if not isinstance(truncate, bool):
        raise TypeError(f"truncate must be bool, not {truncate.__class__.__name__}")
    only, drop, rename = _keys("only", only), _keys("drop", drop), _renames(rename)
    # The rules for keys are the same for all edits; a function of a Column has no keys to check.
    has_function = any(map(callable, (only, drop, rename)))
    edit = HeaderEdit.of(
        only=None if callable(only) else only,
        drop=() if callable(drop) or (drop is None and has_function) else drop,
        rename=None if callable(rename) else rename,
        replace=_constants(replace),
        set=_constants(set),
        append=_constants(append),
        ignore_case=ignore_case,
    )
    step = _EditStep(
        result_name,
        only if callable(only) else edit.only,  # type: ignore[arg-type]
        drop if callable(drop) else edit.drop,  # type: ignore[arg-type]
        rename if callable(rename) else dict(edit.rename),  # type: ignore[arg-type]
        _replacements(replace, ignore_case),
        _added("set", set),
        _added("append", append),
        ignore_case,
        nulls == "skip",
        truncate,
        observe,
    )
    return run_step(df, (Input(column, "headers are edited in", (HEADERS,)),), step)


@dataclass(frozen=True)
class _EditStep:
    """Edit of headers by expressions of Spark SQL, with the arguments of :func:`edit_headers`."""

    result_name: str
    only: Keys | None
    drop: Keys | None
    rename: Renames | None
    replaced: tuple[tuple[str, NewValue], ...]
    set: tuple[_AddedHeader, ...]
    appended: tuple[_AddedHeader, ...]
    ignore_case: bool
    skip_nulls: bool
    truncate: bool
    observe: str | Observation | None

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the DataFrame with the edited headers in the column ``result_name``."""
        check_replaced(df, fields, self.result_name)
        on_sail = is_sail(df.sparkSession)
        for key, value in self.replaced:
            if isinstance(value, Function):
                _check_function(df, key, value)
        if self.observe is not None:
            df = self._observed(df, quoted_column(inputs[0].name))
        df, pads = _with_pads(df, fields, self.replaced)
        # New values become columns first, because a random expression that is used several times must be evaluated only
        # once.
        added = [*self.set, *self.appended]
        columns = {find_unused_name(f"inserted_{n}", fields): header for n, header in enumerate(added)}
        wide = df.select("*", *(_column_of(header, fields).alias(name) for name, header in columns.items()))
        types = {field.name: field.dataType for field in wide.schema.fields}
        new = [
            F.struct(
                F.lit(header.key).alias("key"),
                _write_value(header, name, types[name], self.truncate, on_sail).alias("value"),
            )
            for name, header in columns.items()
        ]
        set_values = dict(zip((header.key for header in self.set), new, strict=False))
        headers = quoted_column(inputs[0].name)
        if new:
            # Sail concatenates only arrays of the same nullability.
            headers = headers.cast(HEADERS)
        missing = [_missing(headers, key, value) for key, value in set_values.items()]
        edited = self._changed(self._remaining(headers, set_values), set_values, pads)
        if new:
            appended = F.concat(*missing, F.array(*new[len(missing) :]).cast(HEADERS))
            edited = _with_appended(edited, appended, self.skip_nulls)
        headers = edited
        if on_sail:
            headers = block_pushdown(headers)
        names = dict.fromkeys([*fields, self.result_name])
        return wide.select(
            *(headers.alias(name) if name == self.result_name else quoted_column(name) for name in names)
        )

    def _remaining(self, headers: Column, set_values: Mapping[str, Column]) -> Column:
        """Return the headers that are not dropped; of each key that is set, only the first header is kept."""
        if set_values:
            # Positions refer to the list before this filter, which never removes the first header of a key.
            firsts = {key: _position(headers, key) for key in set_values}

            def is_kept(header: Column, index: Column) -> Column:
                choices = []
                for key, value in set_values.items():
                    kept = index + 1 == firsts[key]
                    if self.skip_nulls:
                        kept = kept | value["value"].isNull()
                    choices.append((header["key"] == key, kept))
                return case_when(choices, F.lit(True), F.when)

            headers = F.filter(headers, is_kept)
        only, drop = self.only, self.drop
        if only is None and not drop:
            return headers

        def stays(header: Column) -> Column:
            key, stays = header["key"], F.lit(True)
            if only is not None:
                stays = F.coalesce(self._matches(key, only, "only"), F.lit(False))
            if drop:
                stays = stays & ~F.coalesce(self._matches(key, drop, "drop"), F.lit(False))
            return stays | key.isin(*set_values) if set_values else stays

        return F.filter(headers, stays)

    def _changed(self, headers: Column, set_values: Mapping[str, Column], pads: Mapping[str, _Pads]) -> Column:
        """Rename headers and replace their values."""
        if not (self.rename or self.replaced or set_values):
            return headers

        def changed(header: Column) -> Column:
            key, old = header["key"], header["value"]
            name = self._name(key)
            new_key = _rename(key, name, self.rename) if self.rename else key
            if callable(self.rename) and set_values:
                new_key = F.when(key.isin(*set_values), key).otherwise(new_key)
            values = [
                ((name == replaced) & old.isNotNull(), _replace(new, old, pads.get(replaced)))
                for replaced, new in self.replaced
            ]
            for set_key, struct in set_values.items():
                written = struct["value"]
                values.append((key == set_key, F.coalesce(written, old) if self.skip_nulls else written))
            return F.struct(new_key.alias("key"), case_when(values, old, F.when).alias("value"))

        return F.transform(headers, changed)

    def _name(self, key: Column) -> Column:
        """Return the comparable form of a key; see :func:`letterhead._header_edits.fold_key`."""
        return F.translate(key, ascii_uppercase, ascii_lowercase) if self.ignore_case else key

    def _matches(self, key: Column, keys: Any, parameter: str) -> Column:
        if callable(keys):
            return _check_column(parameter, keys(key))
        return self._name(key).isin(*keys) if keys else F.lit(False)

    def _observed(self, df: DataFrame, headers: Column) -> DataFrame:
        """Return a DataFrame that counts the headers of each dropped or replaced key."""
        not_on_sail(df.sparkSession, "observe=", "count the headers with lhs.scan_headers")
        keys = dict.fromkeys([*(() if callable(self.drop) else self.drop or ()), *(key for key, _ in self.replaced)])
        if not keys:
            raise ValueError("observe= counts the keys in drop= and replace=, and there are none")

        def count(key: str) -> Column:
            found = F.filter(headers, lambda header: self._name(header["key"]) == key)
            return F.coalesce(F.sum(F.greatest(F.size(found), F.lit(0))), F.lit(0)).alias(key)

        return df.observe(self.observe, *map(count, keys))


class _AddedHeader(NamedTuple):
    """Header to set or append: its key, the name of a column, a Column or constant bytes, and the type to write."""

    key: str
    column: Any
    type: str | None = None


# Arguments ------------------------------------------------------------------------------------------------------------


def _keys(parameter: str, keys: Any) -> Any:
    if keys is None or callable(keys):
        return keys
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise TypeError(f"{parameter} must be a list of keys or a function of a Column, not {keys.__class__.__name__}")
    return [_check_key(parameter, key) for key in keys]


def _renames(rename: Any) -> Any:
    if rename is None or callable(rename):
        return rename
    if not isinstance(rename, Mapping):
        name = rename.__class__.__name__
        raise TypeError(f"rename must be a mapping of old key to new or a function of a Column, not {name}")
    return {_check_key("rename", old): _check_key("rename", new) for old, new in rename.items()}


def _check_key(parameter: str, key: Any) -> Any:
    check_str(f"a key of {parameter}", key)
    return key


def _constants(values: Any) -> Any:
    """Return headers with constant values, to check their keys; other arguments are returned unchanged."""
    if isinstance(values, Mapping):
        return dict.fromkeys(values, b"")
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        return values
    return [(pair[0], b"") if isinstance(pair, tuple) and len(pair) == 2 else pair for pair in values]


def _replacements(replace: Any, ignore_case: bool) -> tuple[tuple[str, NewValue], ...]:
    edit = HeaderEdit() if replace is None else HeaderEdit.of(replace=replace, ignore_case=ignore_case)
    for key, value in edit.replace:
        check_str("a key of replace", key)
        if isinstance(value, Constant) and isinstance(value.value, Value):
            raise TypeError(f"header {key!r}: pass bytes, such as lh.Int32(3).bits")
    return edit.replace  # type: ignore[return-value]


def _added(parameter: str, added: Any) -> tuple[_AddedHeader, ...]:
    if added is None:
        return ()
    pairs = list(added.items()) if isinstance(added, Mapping) else list(added)
    for key, _ in pairs:
        _check_key(parameter, key)
    return tuple(_added_header(key, value) for key, value in pairs)


def _added_header(key: str, value: Any) -> _AddedHeader:
    if value is None or isinstance(value, bytes | Lit):
        constant = value.value if isinstance(value, Lit) else value
        if isinstance(constant, Value):
            raise TypeError(f"header {key!r}: pass bytes, such as lh.Int32(3).bits")
        return _AddedHeader(key, constant, "binary")
    if isinstance(value, str) or is_column(value):
        return _AddedHeader(key, value)
    if not isinstance(value, tuple) or len(value) != 2 or not (isinstance(value[0], str) or is_column(value[0])):
        raise TypeError(f"header {key!r}: pass the name of a column, a Column, a pair (column, type), or lh.lit(...) for "
                        f"a constant, not {value.__class__.__name__}: a number is (F.lit(3), 'int32')")  # fmt: skip
    try:
        type = type_name(value[1], sql=True)
    except (TypeError, ValueError) as error:
        raise error.__class__(f"header {key!r}: {error}") from None
    # Values are written in the first of several alternative types.
    if is_only_read(type.partition(" | ")[0]):
        name, suffix, _ = split_type(type.partition(" | ")[0])
        raise ValueError(
            f"header {key!r}: type '{type}' can be read, but not written: pass '{name}' without ':{suffix}'"
        )
    return _AddedHeader(key, value[0], type)


# Expressions ----------------------------------------------------------------------------------------------------------


def _position(headers: Column, key: str) -> Column:
    """Return the position of the first header with a key, counted from 1; 0 if there is none."""
    return F.array_position(F.transform(headers, lambda header: header["key"]), F.lit(key))


def _missing(headers: Column, key: str, value: Column) -> Column:
    """Return an array with the header to append if its key is missing."""
    is_missing = F.coalesce(_position(headers, key), F.lit(0)) == 0
    return F.when(is_missing, F.array(value)).otherwise(F.array()).cast(HEADERS)


def _check_function(df: DataFrame, key: str, function: Function) -> None:
    """Reject a function that does not return strings or bytes; the query is analyzed, but not run."""
    values = F.array(F.lit(b"").cast("binary"))
    changed = F.transform(values, lambda value: _check_column("replace", function.function(value)))
    try:
        type = df.select(changed.alias("values")).schema[0].dataType.elementType
    except AnalysisException as error:
        if "LAMBDA_FUNCTION_WITH_PYTHON_UDF" not in str(error):
            raise
        raise TypeError(
            f"header {key!r}: the function of replace runs Python, which Spark does not do for the elements of a list: pass a "
            "function of Spark's own expressions, such as lambda value: F.sha2(value, 256), or a mask, 'hash' or lh.hmac(key)"
        ) from None
    if not isinstance(type, StringType | BinaryType):
        raise TypeError(f"header {key!r}: the function of replace returns {ddl(type)}: cast it to string or binary")


class _Pads(NamedTuple):
    """Names of the columns with the two keys that HMAC derives from the secret key."""

    inner: str
    outer: str


def _with_pads(
    df: DataFrame, fields: Mapping[str, StructField], replaced: Sequence[tuple[str, NewValue]]
) -> tuple[DataFrame, dict[str, _Pads]]:
    """Return a DataFrame with HMAC's derived keys as columns, and the column names by header key.

    They come from another DataFrame, because a plan exposes its constants in Spark's user interface and logs.
    """
    masks = [(key, mask) for key, mask in replaced if isinstance(mask, Hmac)]
    if not masks:
        return df, {}
    pads = {
        key: _Pads(*(find_unused_name(f"{name}_{n}", fields) for name in _Pads._fields))
        for n, (key, _) in enumerate(masks)
    }
    names = [name for pad in pads.values() for name in pad]
    row = tuple(key for _, mask in masks for key in _hmac_keys(mask))
    keys = df.sparkSession.createDataFrame([row], ", ".join(f"{name} binary" for name in names))
    return df.crossJoin(F.broadcast(keys)), pads


def _hmac_keys(mask: Hmac) -> tuple[bytes, bytes]:
    """Return the inner and outer prefixes that HMAC-SHA-256 hashes; RFC 2104, section 2."""
    key = hashlib.sha256(mask.key).digest() if len(mask.key) > _BLOCK_BYTES else mask.key
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in padded) for pad in (0x36, 0x5C))
    return inner, outer


_BLOCK_BYTES = 64


def _replace(new: NewValue, value: Column, pads: _Pads | None) -> Column:
    """Return the replacement of a non-null value; ``pads`` are the columns for HMAC."""
    match new:
        case Hmac():
            inner, outer = map(quoted_column, require(pads, "the keys of HMAC"))
            hashed = F.unhex(F.sha2(F.concat(inner, value), 256))
            return F.sha2(F.concat(outer, hashed), 256).cast("binary")
        case Function():
            return _check_column("replace", new.function(value)).cast("binary")
        case Mask("hash"):
            return F.sha2(value, 256).cast("binary")
        case Mask("redact"):
            return F.lit(b"***").cast("binary")
        case Mask():
            # On Sail, `substring` fails for bytes that are not UTF-8, so the last four bytes are taken as hexadecimal
            # digits.
            last = F.substring(F.hex(value), -8, 8)
            is_shown = (F.length(value) >= 8) & last.rlike(r"\A(?:[2-6][0-9A-F]|7[0-9A-E]){4}\z")
            shown = F.when(is_shown, F.unhex(last)).otherwise(F.lit(b"").cast("binary"))
            return F.concat(F.lit(b"****").cast("binary"), shown)
        case Constant():
            return F.lit(new.value).cast("binary")
        case _:
            raise AssertionError(new)


def _rename(key: Column, name: Column, rename: Any) -> Column:
    if callable(rename):
        # Headers with a null key cannot be written.
        no_key = F.raise_error(F.lit("rename makes the key of a header null (null_key)"))
        return F.coalesce(_check_column("rename", rename(key)), F.when(key.isNotNull(), no_key).cast("string"))
    return case_when([(name == old_key, F.lit(new_key)) for old_key, new_key in rename.items()], key, F.when)


def _check_column(parameter: str, result: Any) -> Column:
    if not is_column(result):
        raise TypeError(f"the function of {parameter} must return a Column, not {result.__class__.__name__}")
    column: Column = result
    return column


def _with_appended(headers: Column, new: Column, skip: bool) -> Column:
    """Append new headers."""
    if skip:
        new = F.filter(new, lambda header: header["value"].isNotNull())
    joined = F.concat(F.coalesce(headers, F.array().cast(HEADERS)), new)
    return F.when(headers.isNotNull() | (F.size(new) > 0), joined)


def _column_of(header: _AddedHeader, fields: Mapping[str, StructField]) -> Column:
    if not isinstance(header.column, str):
        return header.column if is_column(header.column) else F.lit(header.column).cast("binary")
    if header.column not in fields:
        raise ValueError(f"header {header.key!r}: {unknown_name('column', header.column, fields)}")
    return quoted_column(header.column)


def _write_value(header: _AddedHeader, name: str, column_type: DataType, truncate: bool, on_sail: bool) -> Column:
    """Return the bytes of a header value from the column ``name``."""
    column = f"column {header.column!r}" if isinstance(header.column, str) else "the column"
    where = f"header {header.key!r}: {column}"
    type = header.type
    if type is None:
        type = ddl(column_type)
        if type not in ("string", "binary"):
            raise TypeError(
                f"{where} is {type}, which needs a type to be written: pass a pair such as (column, 'int64')"
            )
    accepted = written_from(type, column_type)
    if accepted is not None:
        hint = f": {GIVE_ZONE}" if isinstance(column_type, TimestampNTZType) and accepted == "timestamp" else ""
        raise TypeError(f"{where} is {ddl(column_type)}, and {type} is written from {accepted}{hint}")
    if on_sail:
        if type in ("string", "binary"):
            return quoted_column(name).cast("binary")
        write = partial(write_values, key=header.key, type=type, truncate=truncate)
        return ArrowFunction("written_values", write).column(quoted_column(name), BinaryType())
    scale = column_type.scale if isinstance(column_type, DecimalType) else 0
    written = writer(type, scale=scale, truncate=truncate)(sql_text.column_by_name(name))
    return value_unless_failed(
        written.checks, written.value, lambda check: raise_expression(f"header {header.key}: ", check)
    ).column
