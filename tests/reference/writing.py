"""What the operations that write have in common: headers go through the gate, and the rest is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from letterhead._names import check_name
from letterhead.errors import ConversionError, ErrorDetail, as_error
from tests.reference import keys
from tests.reference.formats import Format
from tests.reference.keys import Key
from tests.reference.losses import ON_LOSS, Gate, Ledger, Losses, RequestedTypes, TypesOption
from tests.reference.protocols import Fields, Outgoing, Refused, Written
from tests.reference.reading import header_of, unknown_type

NULL_HEADERS = ("skip", "raise")


FieldsFor = Callable[[Ledger], Fields]
"""Returns the fields of a message, and records the losses of fields in the ledger."""


class Report(NamedTuple):
    """A message that was written and what was lost on the way, or why it could not be."""

    data: bytes | None
    losses: Losses
    details: list[ErrorDetail]


NO_MESSAGE = Report(None, Losses(), [])


class Writer:
    """Writes messages into one format.

    Parameters
    ----------
    row : Format
        The target.
    types : str or mapping, optional
        How values lose or get their types.
    on_loss : {"raise", "drop", "report"}
        What to do with what the target cannot carry.
    nulls : {"skip", "raise"}
        Whether headers that are null are written as none or refused.
    canonical : bool
        Write headers in the one order that the format has for them.
    converting : bool
        The headers were read from another format, and not made by the caller.
    from_typed_keys : bool
        That format has typed keys.

    Raises
    ------
    TypeError, ValueError
        If an option makes no sense for the target.
    """

    def __init__(
        self,
        row: Format,
        *,
        types: TypesOption,
        on_loss: str,
        nulls: str,
        canonical: bool,
        converting: bool,
        from_typed_keys: bool = False,
    ) -> None:
        check_name("on_loss", on_loss, ON_LOSS)
        check_name("nulls", nulls, NULL_HEADERS)
        if canonical and row.traits.canonical is None:
            raise ValueError(f"canonical=True: {row.name} has no order of its own for headers")
        self.row = row
        self.requested = RequestedTypes(types, row)
        self.on_loss = on_loss
        self.nulls = nulls
        self.canonical = canonical
        self.converting = converting
        self.from_typed_keys = from_typed_keys
        self.most_reports: int | None = None
        """The most losses that are reported of one message."""

    def gather(self, headers: Iterable[Any] | None, ledger: Ledger) -> list[Outgoing]:
        """Read headers through the gate."""
        if headers is None and self.nulls == "raise":
            raise Refused("null_not_carried", 'the list of headers is null, and nulls="raise" refuses that')
        gate = Gate(self.row, self.requested, ledger, converting=self.converting, from_typed_keys=self.from_typed_keys)
        carried = [gate.carry(index, *_checked(index, header)) for index, header in enumerate(headers or ())]
        outgoing = [header for header in carried if header is not None]
        if self.canonical:
            outgoing.sort(key=self.row.traits.canonical)
        return outgoing

    def serialize(
        self, headers: list[Outgoing], fields: Fields, ledger: Ledger, *, has_headers_field: bool
    ) -> bytes | None:
        """Return the bytes of a message; ``None`` where the format has no bytes for it."""
        block = self.row.block.write(headers)
        if self.row.message is None:
            return block
        return self.row.message.write(fields, Written(len(headers), block, has_headers_field), ledger.lose)

    def write(self, headers: Iterable[Any] | None, fields: FieldsFor, number: int | None = None) -> Report:
        """Write one message, whose fields are asked for when its headers are through."""
        ledger = Ledger()
        try:
            gathered = self.gather(headers, ledger)
            written = self.serialize(gathered, fields(ledger), ledger, has_headers_field=headers is not None)
        except Refused as refused:
            detail = ErrorDetail(refused.code, refused.message, None, refused.header, refused.key)
            return Report(None, Losses(), [detail])
        if self.on_loss == "raise" and ledger.first is not None:
            code, message, header, key = ledger.first[:4]
            raise as_error(ErrorDetail(code, message, None, header, key), ConversionError, self.row.name, row=number)
        return Report(written, ledger.report(self.most_reports), [])


def _checked(index: int, header: Any) -> tuple[Key, str | None, bytes | None]:
    """Refuse headers that no format could have."""
    key, type, value = header_of(header)
    if key is None:
        raise Refused("null_key", "the key is null", index)
    if isinstance(key, str):
        try:
            key.encode()
        except UnicodeEncodeError:
            raise Refused("key_not_utf8", "half of a surrogate pair has no UTF-8 form", index) from None
    if isinstance(key, int) and not -(1 << 31) <= key < 1 << 31:
        raise Refused("out_of_range", "the key does not fit int32", index, str(key))
    unknown = unknown_type(key, type)
    if unknown is not None:
        text = None if isinstance(key, tuple) and unknown == key[0] else keys.spell(key)
        raise Refused("unknown_type", "the name of the type is unknown", index, text)
    return key, type, value
