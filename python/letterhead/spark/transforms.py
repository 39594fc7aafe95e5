"""The verbs as functions from DataFrame to DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from letterhead.errors import check_name
from letterhead.fields import check_distinct
from letterhead.results import plain_types
from letterhead.spark.frame import (
    Input,
    check_column,
    check_no_collision,
    check_types,
    computed,
    crossing_columns,
    fields_of,
    kept_names,
)
from letterhead.spark.schemas import Declared, declared, header_lists, spelled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.results import Types

__all__ = ["Transform", "convert_headers", "decode_headers", "encode_headers", "explode_batches", "select_headers"]


def decode_headers(
    column: str | Column,
    format: str,
    *,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Read a column of bytes into headers.

    A block becomes one column ``headers``; a message format becomes one column for each of its fields.

    Parameters
    ----------
    column : str or Column
        The binary column, by name or as a Column, beside which all columns of the frame are others.
    format : str
        Name of the format.
    into : str, optional
        Name of the column of headers. Only for a block.
    keep : sequence of str, optional
        What else comes along, in front: names of columns, ``[]`` for nothing. All others by default. Only what is kept
        and what is read crosses into Python.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with an error in a row: raise it, quoting the kept columns; make the row null; or make it null and
        describe the error in a last column.
    error_column : str, default "error"
        Name of that last column.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    text_keys : bool, default False
        Of a format with typed keys: give text, and refuse keys of another type.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame, for ``df.transform``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these; when it is called, if the frame does not have such columns.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> state.transform(lhs.decode_headers("value", "streams-timestamped", keep=["key"]))
    DataFrame[key: binary, headers: array<struct<key:string,value:binary>>, timestamp: bigint, payload: binary]
    """
    options = {
        "errors": errors,
        "error_column": error_column,
        **_flags(lenient=lenient, strict_types=strict_types, text_keys=text_keys),
        "limits": limits,
    }
    made = declared("decode", format, **options)
    names = [field for field, _ in _fields(format)]
    if into is not None:
        _check_str("into", into)
        if _is_message(format):
            raise ValueError(f"into= names the one column of a block, and {format} makes {', '.join(names)}")
        names = [into]
    return Transform(
        verb="decode",
        format=format,
        options=options,
        inputs=(_bytes_input(column, format),),
        keep=_check_names("keep", keep),
        made=made,
        names=(*names, *([error_column] if errors == "column" else [])),
    )


def select_headers(
    column: str | Column,
    format: str,
    columns: Columns,
    *,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Read some headers of every message as typed columns.

    Where the format puts a type beside each value, that type decides: a value of another type than the one asked for is
    an error.

    Parameters
    ----------
    column : str or Column
        A binary column, or a column of headers as :func:`decode_headers` gives and as Spark's Kafka source
        does with ``includeHeaders``.
    format : str
        Name of the format.
    columns : mapping of str to str or Field
        Output column to a type, or to what :func:`letterhead.field` or :func:`letterhead.All` gave.
    keep, errors, error_column, lenient, strict_types, limits
        As in :func:`decode_headers`.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame; what it raises, :func:`decode_headers` says.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> columns = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
    >>> orders.transform(lhs.select_headers("headers", "kafka", columns, keep=["offset"]))
    DataFrame[offset: bigint, tenant: string, amount_cents: bigint, route: array<string>]
    """
    flags = _flags(lenient=lenient, strict_types=strict_types)
    options = {
        "columns": _mapping("columns", columns),
        "errors": errors,
        "error_column": error_column,
        "_dialect": "spark",
        "limits": limits,
        **flags,
    }
    made = declared("select", format, **options)
    cells = _bytes_input(column, format)
    return Transform(
        verb="select",
        format=format,
        options=options,
        inputs=(cells._replace(types=(*cells.types, *header_lists(format))),),
        keep=_check_names("keep", keep),
        made=made,
        names=tuple(field.name for field in made.spark),
    )


def encode_headers(
    column: str | Column,
    format: str,
    *,
    fields: Mapping[str, str | Column | None] | None = None,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
) -> Transform:
    """Write a column of headers, and for a message format the columns of its other fields, as bytes.

    Parameters
    ----------
    column : str or Column
        The column of headers, as :func:`decode_headers` gives for the format. Keys that are typed may be text;
        ``type`` may be missing, and may be there where the format has none.
    format : str
        Name of the format.
    fields : mapping of str to str, Column or None, optional
        Field of the message to the column it is in, or to ``None`` where it is null; by default the column of the same
        name.
    into : str, optional
        Name of the binary column that is made: by default ``headers`` for a block and ``value`` for a message format.
    keep : sequence of str, optional
        As in :func:`decode_headers`.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the format cannot carry: stop; write what is nearest or leave it out; or do that and say so
        in a column ``losses``.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        What becomes of types, as in :func:`letterhead.convert`.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame; what it raises, :func:`decode_headers` says.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> fields = {"timestamp": "ts_ms", "payload": "value"}
    >>> frame.transform(lhs.encode_headers("headers", "streams-timestamped", fields=fields))
    DataFrame[key: binary, value: binary]
    """
    options = {
        "on_loss": on_loss,
        "types": _checked_types(types),
        "null_headers": null_headers,
        **_flags(canonical=canonical),
    }
    made = declared("encode", format, **options)
    has_fields = _is_message(format)
    if into is None:
        into = "value" if has_fields else "headers"
    _check_str("into", into)
    inputs = _field_inputs(column, format, fields)
    return Transform(
        verb="encode",
        format=format,
        options=options,
        inputs=tuple(input for input in inputs.values() if input is not None),
        keep=_check_names("keep", keep),
        made=made,
        names=(into, *(field.name for field in made.spark[1:])),
        fields=_places_of(inputs) if has_fields else None,
    )


def convert_headers(
    column: str | Column,
    format: str,
    *,
    target: str,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Turn a column of messages of one format into bytes of another.

    Parameters
    ----------
    column : str or Column
        The binary column, by name or as a Column, beside which all columns of the frame are others.
    format : str
        Name of its format, a block or a message format.
    target : str
        Name of the format to write, a block or a message format.
    into : str, optional
        Name of the binary column that is made: by default that of the one that is read.
    on_loss, types, null_headers, canonical
        As in :func:`encode_headers`.
    keep, errors, error_column, lenient, strict_types, limits
        As in :func:`decode_headers`.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame; what it raises, :func:`decode_headers` says.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> blocks = orders.transform(lhs.encode_headers("headers", "kafka", keep=["offset"]))
    >>> blocks.transform(lhs.convert_headers("headers", "kafka", target="iggy", types="binary", on_loss="report"))
    ... # doctest: +ELLIPSIS
    DataFrame[offset: bigint, headers: binary, losses: array<struct<code:string,message:string,header:int,...>>]
    """
    _check_str("target", target)
    options = {
        "target": target,
        "on_loss": on_loss,
        "types": _checked_types(types),
        "null_headers": null_headers,
        "errors": errors,
        "error_column": error_column,
        "limits": limits,
        **_flags(canonical=canonical, lenient=lenient, strict_types=strict_types),
    }
    made = declared("convert", format, **options)
    cells = _bytes_input(column, format)
    if into is None and not isinstance(column, str):
        raise ValueError("into= names the column that is made, as a Column has no name to be replaced")
    into = cells.name if into is None else into
    _check_str("into", into)
    return Transform(
        verb="convert",
        format=format,
        options=options,
        inputs=(cells,),
        keep=_check_names("keep", keep),
        made=made,
        names=(into, *(field.name for field in made.spark[1:])),
    )


def explode_batches(
    column: str | Column,
    format: str,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Read a column of batches into a row for each message.

    What is kept stands beside every message of its row. A row whose cell is null, or holds no message, is gone.

    Parameters
    ----------
    column : str or Column
        The binary column, by name or as a Column, beside which all columns of the frame are others.
    format : str
        Name of the format, a batch.
    columns : sequence of str, optional
        Fields of the messages to make columns of, in order; all of them by default. ``row`` can be one: which cell of
        the Arrow batch that Spark happened to make. Rows of a frame have no numbers: keep what names them.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`select_headers`; they come after the fields.
    errors, error_column
        As in :func:`decode_headers`. Where the framing breaks, one row describes the rest of the batch.
    lenient : bool, default False
        Let a message go that is cut off at the end of a cell, as in what a fetch gives.
    keep, strict_types, text_keys, limits
        As in :func:`decode_headers`.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame; what it raises, :func:`decode_headers` says.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> fetched.transform(lhs.explode_batches("cell", "kip82-messages", columns=["offset"], headers={"n": "int8"})).collect()
    [Row(partition=0, offset=0, n=0), Row(partition=0, offset=1, n=1), Row(partition=1, offset=2, n=2)]
    """
    fields = _check_names("columns", columns)
    flags = _flags(lenient=lenient, strict_types=strict_types, text_keys=text_keys)
    options = {"errors": errors, "error_column": error_column, "_dialect": "spark", "limits": limits, **flags}
    if headers is not None:
        options["headers"] = _mapping("headers", headers)
    if fields is None:
        fields = tuple(field.name for field in declared("messages", format).spark[1:])
    # The first one says which row a message is from, and does not leave.
    options["columns"] = ("row", *fields)
    made = declared("messages", format, **options)
    return Transform(
        verb="messages",
        format=format,
        options=options,
        inputs=(_bytes_input(column, format),),
        keep=_check_names("keep", keep),
        made=made,
        names=tuple(field.name for field in made.spark[1:]),
    )


@dataclass(frozen=True)
class Transform:
    """A function from DataFrame to DataFrame; call it, or hand it to ``df.transform``.

    It runs as ``mapInArrow``: Spark's function and the schema it declares are made together here, as Spark would match
    columns by position without a look at their names. Batch and streaming frames, classic and Connect are the same.

    Attributes
    ----------
    verb : {"decode", "select", "encode", "convert", "messages"}
        What is done. Of messages, the first column that is made stays behind: the row that a message is from.
    format : str
        Name of the format.
    options : mapping
        Those of the verb.
    inputs : tuple of Input
        The columns that are read.
    keep : tuple of str or None
        The columns that come along.
    made : Declared
        What the kernel makes.
    names : tuple of str
        Names under which that leaves.
    fields : mapping of str to int or None, optional
        For a message format to write: its fields and the places of their columns in ``inputs``, or none where they are null.
    """

    verb: str
    format: str
    options: Mapping[str, Any]
    inputs: tuple[Input, ...]
    keep: tuple[str, ...] | None
    made: Declared
    names: tuple[str, ...]
    fields: Mapping[str, int | None] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.names)

    def __call__(self, df: DataFrame) -> DataFrame:
        """Plan the work on a frame.

        Parameters
        ----------
        df : DataFrame
            A frame with the columns that are read and kept.

        Returns
        -------
        DataFrame
            The kept columns, then those that are made.

        Raises
        ------
        ValueError
            If a column is missing, or would be there twice.
        TypeError
            If a column is of a type that does not fit.
        """
        from pyspark.sql.types import StructField, StructType

        from letterhead.spark.runner import Runner

        columns = fields_of(df)
        df, inputs = computed(df, self.inputs)
        check_types(fields_of(df), inputs)
        kept = kept_names(columns, self.keep, self.inputs)
        check_no_collision(df, kept, self.names)
        if not kept and not self.names:
            raise ValueError("no columns would be left: name some that are kept or made")
        # What is both kept and read crosses once.
        crossing = list(dict.fromkeys([*kept, *(column.name for column in inputs)]))
        multiplies = self.verb == "messages"
        runner = Runner(
            verb=self.verb,
            format=self.format,
            options=self.options,
            kept=tuple(kept),
            inputs=self._places([crossing.index(column.name) for column in inputs]),
            made=self.made.arrow,
            names=self.names,
            multiplies=multiplies,
        )
        leaving = self.made.spark[1:] if multiplies else self.made.spark
        made = [StructField(name, field.dataType) for name, field in zip(self.names, leaving, strict=True)]
        schema = StructType([columns[name] for name in kept] + made)
        return df.select(*crossing_columns(crossing)).mapInArrow(runner, schema)

    def _places(self, crossing: list[int]) -> Any:
        """Return where the input is; or each field of a message format, and the type of those that are null."""
        if not self.fields:
            return crossing[0]
        types = {field.name: field.type for field in declared("decode", self.format).arrow}
        return {field: types[field] if place is None else crossing[place] for field, place in self.fields.items()}


def _fields(format: str) -> list[tuple[str, str]]:
    """Give the fields of a format with their types in Spark's spelling; of a block, its headers."""
    # With errors="column" it is a struct for a block too, and its last field is the error.
    return [(field.name, spelled(field.dataType)) for field in declared("decode", format, errors="column").spark[:-1]]


def _is_message(format: str) -> bool:
    return len(_fields(format)) > 1


def _places_of(inputs: Mapping[str, Input | None]) -> dict[str, int | None]:
    places = iter(range(len(inputs)))
    return {field: None if input is None else next(places) for field, input in inputs.items()}


def _bytes_input(column: str | Column, format: str) -> Input:
    check_column("column", column)
    return Input(column, f"{format} is read from", ("binary",))


def _field_inputs(
    column: str | Column, format: str, fields: Mapping[str, str | Column | None] | None
) -> dict[str, Input | None]:
    """Give the columns that the fields of a format are written from, or none for a field that is null."""
    check_column("column", column)
    types = dict(_fields(format))
    others = [name for name in types if name != "headers"]
    fields = _mapping("fields", fields or {})
    for field, name in fields.items():
        if not others:
            raise ValueError(f"{format} has no fields but its headers, and fields= names {field!r}")
        check_name("field", field, others)
        if name is not None:
            check_column(f"the column of field {field!r}", name)
    inputs: dict[str, Input | None] = {}
    for field, type in types.items():
        if field == "headers":
            inputs[field] = Input(column, f"the headers of {format} are written from", header_lists(format))
            continue
        name = fields.get(field, field)
        hint = "" if field in fields else f"fields={{{field!r}: …}} names another, or None for null"
        purpose = f"the {field} of {format} is written from"
        inputs[field] = None if name is None else Input(name, purpose, (type,), hint)
    return inputs


def _checked_types(types: Types | None) -> Any:
    plain_types(types, sql=True)
    return dict(types) if isinstance(types, Mapping) else types


def _mapping(what: str, given: object) -> dict[Any, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping, not {given.__class__.__name__}")
    return dict(given)


def _check_names(what: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"{what} must be a list of column names, not {names.__class__.__name__}")
    for name in names:
        _check_str(f"a column of {what}", name)
    if len(set(names)) < len(names):
        raise ValueError(f"{what} names a column twice: {', '.join(names)}")
    return tuple(names)


def _flags(**flags: object) -> dict[str, Any]:
    for name, given in flags.items():
        if not isinstance(given, bool):
            raise TypeError(f"{name} must be bool, not {given.__class__.__name__}")
    return flags


def _check_str(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"{what} must be str, not {given.__class__.__name__}")
