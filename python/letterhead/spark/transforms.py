"""The verbs as functions from DataFrame to DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from letterhead.columns import ORDERS, normalise
from letterhead.errors import check_name
from letterhead.spark.frame import Input, check_no_collision, check_types, crossing_columns, fields_of, kept_names
from letterhead.spark.schemas import Declared, declared, spelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from letterhead.columns import Columns

__all__ = ["Transform", "decode_headers", "encode_headers", "select_headers"]


def decode_headers(
    column: str,
    format: str,
    *,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "null", "column"] = "raise",
    lenient: bool = False,
    into: str | None = None,
) -> Transform:
    """Read a column of bytes into headers.

    A block becomes one column ``headers``; an envelope becomes one column for each of its fields.

    Parameters
    ----------
    column : str
        Name of the binary column.
    format : str
        Name of the format.
    keep : sequence of str, optional
        What else comes along, in front: names of columns, ``[]`` for nothing. All others by default. Only what is kept
        and what is read crosses into Python.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read: stop with an error that quotes its kept columns, make its cells null,
        or make them null and say why in a last column ``error``.
    lenient : bool, default False
        Accept what Java's deserializers accept.
    into : str, optional
        Name of the column of headers. Only for a block.

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
    _check_bool("lenient", lenient)
    made = declared("decode", format, errors=errors)
    names = [field for field, _ in _fields(format)]
    if into is not None:
        _check_str("into", into)
        if _is_envelope(format):
            raise ValueError(f"into= names the one column of a block, and {format} makes {', '.join(names)}")
        names = [into]
    return Transform(
        verb="decode",
        format=format,
        options={"errors": errors, "lenient": lenient},
        inputs=(_bytes_input(column, format),),
        keep=_check_keep(keep),
        made=made,
        names=(*names, *(["error"] if errors == "column" else [])),
    )


def select_headers(
    column: str,
    format: str,
    columns: Columns,
    *,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "null", "column"] = "raise",
    lenient: bool = False,
) -> Transform:
    """Read some headers of every message as typed columns.

    Parameters
    ----------
    column : str
        Name of a binary column, or of a column of headers as Spark's Kafka source gives with ``includeHeaders``.
    format : str
        Name of the format.
    columns : mapping of str to str or Field
        Output column to a type, or to what :func:`letterhead.field` or :func:`letterhead.All` gave.
    keep : sequence of str, optional
        What else comes along, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that cannot be read: stop with an error that quotes the kept columns of its row, make it
        null, or make it null and say why in a last column ``error``.
    lenient : bool, default False
        Accept what Java's deserializers accept.

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
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> columns = {"tenant": "string", "amount_cents": "int64", "route": lh.All("string")}
    >>> orders.transform(lhs.select_headers("headers", "kafka", columns, keep=["offset"]))
    DataFrame[offset: bigint, tenant: string, amount_cents: bigint, route: array<string>]
    """
    _check_bool("lenient", lenient)
    made = declared("select", format, columns=normalise(columns), errors=errors, dialect="spark")
    cells = _bytes_input(column, format)
    return Transform(
        verb="select",
        format=format,
        options={"columns": dict(columns), "errors": errors, "lenient": lenient, "dialect": "spark"},
        inputs=(cells._replace(types=(*cells.types, _headers_type(format))),),
        keep=_check_keep(keep),
        made=made,
        names=tuple(field.name for field in made.spark),
    )


def encode_headers(
    column: str,
    format: str,
    *,
    fields: Mapping[str, str] | None = None,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    kinds: Literal["be", "le", "text"] | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
) -> Transform:
    """Write a column of headers, and for an envelope the columns of its other fields, as bytes.

    Parameters
    ----------
    column : str
        Name of the column of headers (``array<struct<key:string,value:binary>>``).
    format : str
        Name of the format.
    fields : mapping of str to str, optional
        Field of the envelope to the column it is in; by default the column of the same name.
    into : str, optional
        Name of the binary column that is made: by default ``headers`` for a block and ``value`` for an envelope.
    keep : sequence of str, optional
        What else comes along, as in :func:`decode_headers`.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the format cannot carry: stop, leave it out, or leave it out and say so in a last column
        ``losses``.
    kinds : {"be", "le", "text"}, optional
        How typed values are written in a format without kinds.
    null_headers : {"empty", "raise"}, default "empty"
        Whether a null list is written as no headers, or refused.

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
    >>> fields = {"timestamp": "ts_ms", "payload": "value"}
    >>> frame.transform(lhs.encode_headers("headers", "streams-timestamped", fields=fields))
    DataFrame[key: binary, value: binary]
    """
    if kinds is not None:
        check_name("kinds value", kinds, ORDERS)
    check_name("null_headers value", null_headers, ("empty", "raise"))
    made = declared("encode", format, on_loss=on_loss)
    envelope = _is_envelope(format)
    if into is None:
        into = "value" if envelope else "headers"
    _check_str("into", into)
    return Transform(
        verb="encode",
        format=format,
        options={"on_loss": on_loss, "kinds": kinds, "null_headers": null_headers},
        inputs=_fields_inputs(column, format, fields),
        keep=_check_keep(keep),
        made=made,
        names=(into, *(field.name for field in made.spark[1:])),
        fields=tuple(field for field, _ in _fields(format)) if envelope else (),
    )


@dataclass(frozen=True)
class Transform:
    """A function from DataFrame to DataFrame; call it, or hand it to ``df.transform``.

    It runs as ``mapInArrow``: Spark's function and the schema it declares are made together here, as Spark would match
    columns by position without a look at their names. Batch and streaming frames, classic and Connect are the same.

    Attributes
    ----------
    verb : {"decode", "select", "encode"}
        What is done.
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
    fields : tuple of str
        For an envelope to write: its field in each of the inputs.
    """

    verb: str
    format: str
    options: Mapping[str, Any]
    inputs: tuple[Input, ...]
    keep: tuple[str, ...] | None
    made: Declared
    names: tuple[str, ...]
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            if self.names.count(name) > 1:
                raise ValueError(f"two columns {name!r} would be made: rename one of them")

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
        check_types(columns, self.inputs)
        kept = kept_names(columns, self.keep, self.inputs)
        check_no_collision(df, kept, self.names)
        # What is both kept and read crosses once.
        crossing = list(dict.fromkeys([*kept, *(column.name for column in self.inputs)]))
        places = [crossing.index(column.name) for column in self.inputs]
        runner = Runner(
            verb=self.verb,
            format=self.format,
            options=self.options,
            kept=tuple(kept),
            inputs=dict(zip(self.fields, places, strict=True)) if self.fields else places[0],
            made=self.made.arrow,
            names=self.names,
        )
        made = [StructField(name, field.dataType) for name, field in zip(self.names, self.made.spark, strict=True)]
        schema = StructType([columns[name] for name in kept] + made)
        return df.select(*crossing_columns(crossing)).mapInArrow(runner, schema)


def _fields(format: str) -> list[tuple[str, str]]:
    """Give the fields of a format with their types in Spark's spelling; of a block, its headers."""
    # With errors="column" it is a struct for a block too, and its last field is the error.
    return [(field.name, spelled(field.dataType)) for field in declared("decode", format, errors="column").spark[:-1]]


def _headers_type(format: str) -> str:
    return dict(_fields(format))["headers"]


def _is_envelope(format: str) -> bool:
    return len(_fields(format)) > 1


def _bytes_input(column: str, format: str) -> Input:
    _check_str("column", column)
    return Input(column, f"{format} is read from", ("binary",))


def _fields_inputs(column: str, format: str, fields: Mapping[str, str] | None) -> tuple[Input, ...]:
    _check_str("column", column)
    types = dict(_fields(format))
    others = [name for name in types if name != "headers"]
    fields = dict(fields or {})
    for field, name in fields.items():
        if not others:
            raise ValueError(f"{format} has no fields but its headers, and fields= names {field!r}")
        check_name("field", field, others)
        _check_str(f"the column of field {field!r}", name)
    columns = {name: column if name == "headers" else fields.get(name, name) for name in types}
    return tuple(
        Input(columns[field], f"the {field} of {format} {'are' if field == 'headers' else 'is'} written from", (type,))
        for field, type in types.items()
    )


def _check_keep(keep: Sequence[str] | None) -> tuple[str, ...] | None:
    if keep is None:
        return None
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise TypeError(f"keep must be a list of column names, not {keep.__class__.__name__}")
    for name in keep:
        _check_str("a column of keep", name)
    if len(set(keep)) < len(keep):
        raise ValueError(f"keep names a column twice: {', '.join(keep)}")
    return tuple(keep)


def _check_bool(what: str, given: object) -> None:
    if not isinstance(given, bool):
        raise TypeError(f"{what} must be bool, not {given.__class__.__name__}")


def _check_str(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"{what} must be str, not {given.__class__.__name__}")
