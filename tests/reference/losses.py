"""What a target can carry of the headers of a message, and what it cannot: computed header by header, never for a pair.

A header goes through four gates, in this order: its key, a null value, the type of its value, its value. The first that
leaves it out ends its way. What a gate changes or leaves out is a :class:`~letterhead.results.Loss`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from letterhead._names import check_name, unknown_name
from letterhead.results import Loss
from tests.reference import keys, types, value_types
from tests.reference.formats import Format
from tests.reference.keys import Key
from tests.reference.parts import misfit_of_length
from tests.reference.protocols import Outgoing, Refused
from tests.reference.reading import Reports

ON_LOSS = ("raise", "drop", "report")

TypesOption = str | Mapping[Any, str | Sequence[str]] | None
"""How values lose or get their types: ``"be"``, ``"le"``, ``"text"``, ``"binary"``, or a type for each key."""


class Losses(tuple[Loss, ...]):
    """The losses of one message, in the order in which they were met.

    Attributes
    ----------
    types : dict
        What gives the values their types again: key to type, or to a list of types where the key stands more than once
        with different ones. It can be handed back as ``types``.
    """

    types: dict[Key, str | list[str]]

    def __new__(cls, losses: Iterable[Loss] = (), types: Mapping[Key, str | list[str]] | None = None) -> Losses:
        """Make one of losses, and of what gives their values their types again."""
        result = super().__new__(cls, losses)
        result.types = dict(types or {})
        return result


class Ledger:
    """Where losses are noted as they are met."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.first: Loss | None = None
        """The first that nobody agreed to."""
        self.stood: list[tuple[Key, str, bool]] = []
        """For every value that was written under a type or without the one it had: its key, the type that gives its
        type again, and whether it lost it."""

    def lose(self, loss: Loss) -> None:
        """Record a loss that the options do not allow."""
        self.losses.append(loss)
        self.first = self.first or loss

    def agreed(self, loss: Loss) -> None:
        """Record a loss that the caller asked for."""
        self.losses.append(loss)

    def report(self, limit: int | None = None) -> Losses:
        """Return the losses, and how to undo those of types: as many as a limit allows."""
        stood = self.stood[:limit]
        lost = {key for key, _, was_lost in stood if was_lost}
        restored: dict[Key, list[str]] = {}
        for key, type, _ in stood:
            if key in lost:
                restored.setdefault(key, []).append(type)
        losses = self.losses
        if limit is not None:
            reports = loss_reports(limit)
            losses = reports.keep(losses)
            if losses and losses[-1] != reports.last and len(stood) < len(self.stood):
                losses.append(reports.last)
        return Losses(losses, {key: types if len(set(types)) > 1 else types[0] for key, types in restored.items()})


def loss_reports(limit: int) -> Reports[Loss]:
    """Make the limit of the losses of one call."""
    return Reports(limit, lambda code, message: Loss(code, message, None, None, None, None), "losses")


class Type(NamedTuple):
    """A type, and how the bytes that are to have it spell the value."""

    type: str
    spelling: str

    @classmethod
    def parse(cls, text: str) -> Type:
        """Read ``name[:be|le|text]`` or ``type-200``."""
        if text in value_types.UNNAMED.values():
            return cls(text, "be")
        name, spelling = types.parse(text)
        if not value_types.is_type(name):
            raise unknown_name("type", name, [row.name for row in value_types.VALUE_TYPES])
        if spelling in types.READ_ONLY:
            raise ValueError(f"type '{text}': values are read so, and not converted from it")
        return cls(name, spelling)

    def __str__(self) -> str:
        plain = self.spelling == "be" or self.type not in types.WIDTHS
        return self.type if plain else f"{self.type}:{self.spelling}"


class RequestedTypes:
    """How the values of a call lose or get their types.

    Raises
    ------
    TypeError, ValueError
        If that makes no sense for the target.
    """

    def __init__(self, option: TypesOption, row: Format) -> None:
        self.spelling: str | None = None
        self.binary = False
        self.by_key: list[tuple[Key, Type | list[Type]]] = []
        if option is None:
            return
        if isinstance(option, Mapping):
            self.by_key = [(keys.as_key(key), _types(requested)) for key, requested in option.items()]
        else:
            check_name("types", option, (*types.SUFFIXES, "binary"))
            self.binary = option == "binary"
            self.spelling = None if self.binary else option
        if row.traits.types is None and self.spelling is None:
            raise ValueError(
                f'types={{key: type}} and types="binary" give values a type, and {row.name} carries none: '
                'give types="be", "le" or "text"'
            )
        if row.traits.types is not None and self.spelling is not None:
            raise ValueError(
                f'types="be", "le" and "text" write values without their types, and {row.name} has types: '
                'give types={key: type} or types="binary"'
            )


class Gate:
    """What the headers of one message go through, one after the other.

    Parameters
    ----------
    row : Format
        The target.
    requested : RequestedTypes
        How values lose or get their types.
    ledger : Ledger
        Where losses are noted.
    converting : bool
        Bits that are no value of their type are a loss; otherwise they are the caller's error.
    from_typed_keys : bool
        The headers come from a format with typed keys, where text that spells a number is not that number.
    """

    def __init__(
        self, row: Format, requested: RequestedTypes, ledger: Ledger, *, converting: bool, from_typed_keys: bool = False
    ) -> None:
        self.row = row
        self.traits = row.traits
        self.requested = requested
        self.ledger = ledger
        self.converting = converting
        self.from_typed_keys = from_typed_keys
        self.times: dict[int, int] = {}

    def carry(self, header: int, key: Key, type: str | None, value: bytes | None) -> Outgoing | None:
        """Make a header ready to be written; none where it is left out."""
        way = _Way(self, header, key)
        if not way.key_gate():
            return None
        if value is None:
            if self.traits.nulls:
                return way.outgoing(None, None)
            way.lose("null_not_carried", "the value is null")
            return None
        untyped = self.traits.types is None
        typed = way.untyped(type, value) if untyped else way.typed(type, value)
        if typed is None or not way.length_fits("value", len(typed[1])):
            return None
        if way.back is not None:
            self.ledger.stood.append((way.target, *way.back))
        return way.outgoing(*typed)

    def said_of(self, source: Key, target: Key) -> Type | None:
        """Return what was said of a key, as it was or as it is written, this time that it stands with a value."""
        texts = {keys.spell(source), keys.spell(target)}
        for place, (key, output) in enumerate(self.requested.by_key):
            # The reports of losses show keys in words, and those can be handed back as well.
            if key in (source, target) or (isinstance(key, str) and key in texts):
                time = self.times[place] = self.times.get(place, -1) + 1
                if isinstance(output, Type):
                    return output
                return output[time] if time < len(output) else None
        return None


class _Way:
    """The way of one header through the gates."""

    def __init__(self, gate: Gate, header: int, key: Key) -> None:
        self.gate = gate
        self.traits = gate.traits
        self.header = header
        self.key = key
        self.target: Key = key
        self.back: tuple[str, bool] | None = None

    def outgoing(self, type: str | None, value: bytes | None) -> Outgoing:
        key: Any = keys.typed(self.target) if self.traits.keys == "typed" else self.target
        return Outgoing(self.header, keys.spell(self.key), key.encode() if isinstance(key, str) else key, type, value)

    def lose(self, code: str, message: str) -> None:
        """Record that the header is left out."""
        self.gate.ledger.lose(self._loss(code, message))

    def _loss(self, code: str, message: str, type: str | None = None, written: str | None = None) -> Loss:
        # A key that changed is told as it is written, so that `types` can be handed back; a typed one says the same.
        key = self.key if self.traits.keys == "typed" else self.target
        return Loss(code, message, self.header, keys.spell(key), type, written)

    def _misfit(self, misfit: types.Misfit, prefix: str = "") -> None:
        """Leave out bits that are no value of their type, or refuse them where the caller made them."""
        if not self.gate.converting:
            raise Refused(misfit.code, prefix + misfit.message, self.header, keys.spell(self.key))
        self.lose(misfit.code, prefix + misfit.message)

    # --- the key -----------------------------------------------------------------------------------------------------

    def key_gate(self) -> bool:
        """Bring the key into the form of the target."""
        form = {"text": self._to_text, "int": self._to_int, "typed": self._to_typed}[self.traits.keys]
        target = form()
        if target is None:
            return False
        self.target = target
        if isinstance(target, int):
            return True
        type, bits = keys.typed(target)
        if not self.length_fits("key", len(bits)):
            return False
        try:
            types.check(self.traits.checks, type, bits)
        except types.Misfit as misfit:
            self._misfit(misfit, "key of ")
            return False
        return True

    def _to_text(self) -> str | None:
        if isinstance(self.key, str):
            return self.key
        type, bits = keys.typed(self.key)
        text = types.text_of(type, bits)
        if text is None:
            self.lose("key_not_carried", f"the key is {type} and has no text form")
        else:
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {type}", written="text"))
        return text

    def _to_int(self) -> int | None:
        if isinstance(self.key, int):
            return self.key
        type, bits = keys.typed(self.key)
        text = types.text_of(type, bits) if type == "string" or type in types.INTEGERS else None
        if text is None or not _is_decimal_int32(text):
            self.lose("key_not_carried", "the key is no decimal int32")
            return None
        if type != "int32" and (type != "string" or self.gate.from_typed_keys):
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {type}", written="int32"))
        return int(text)

    def _to_typed(self) -> Key | None:
        type, bits = keys.typed(self.key)
        if type in (self.traits.types or {}).values():
            return keys.plain(type, bits)
        text = types.text_of(type, bits)
        if text is None:
            self.lose("key_not_carried", f"the key is {type} and has no text form")
        else:
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {type}", written="string"))
        return text

    # --- the value ---------------------------------------------------------------------------------------------------

    def length_fits(self, part: str, size: int) -> bool:
        """Leave the header out if a part is shorter or longer than the target can have."""
        misfit = misfit_of_length(part, size, self.traits.lengths)
        if misfit is not None:
            self.lose(*misfit)
        return misfit is None

    def untyped(self, type: str | None, value: bytes) -> tuple[None, bytes] | None:
        """Write a value without its type."""
        if type is None:
            return None, value
        spelling = self.gate.requested.spelling
        if spelling is None:
            how = 'pass types="be", "le" or "text" (--types be)'
            self.lose("type_not_carried", f"{self.gate.row.name} carries no types: {how} to write {type} values")
            return None
        try:
            # A type that is lost can only be given back to bits that are a value of it.
            types.check("value", type, value)
            written = types.untyped(type, value, spelling)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        as_what = {"be": "big-endian", "le": "little-endian", "text": "text"}[spelling]
        as_what = as_what if type in types.WIDTHS else "as it is"
        # All NaNs are spelled alike: only one of them comes back as it was.
        comes_back = spelling != "text" or not types.is_other_nan(type, value)
        restored = str(Type(type, spelling))
        message = f"the type {type} is not carried"
        self.gate.ledger.agreed(self._loss("type_not_carried", message, restored if comes_back else None, as_what))
        self.back = restored, True
        return None, written

    def typed(self, type: str | None, value: bytes) -> tuple[str, bytes] | None:
        """Find the type under which a value is written, and its bits."""
        known = self._as_asked(type, value)
        carried = known and self._as_carried(*known)
        if carried is None:
            return None
        try:
            types.check(self.traits.checks, *carried)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        return carried

    def _as_asked(self, type: str | None, value: bytes) -> tuple[str, bytes] | None:
        output = self.gate.said_of(self.key, self.target)
        if output is None:
            type = type or ("binary" if self.gate.requested.binary else None)
            if type is None:
                how = 'pass types={"retry": "int32"} (--types retry=int32) or types="binary" (--types binary)'
                self.lose("unknown_type", f"{self.gate.row.name} values need a type: {how}")
                return None
            return type, value
        if type == output.type:
            return type, value
        if type not in (None, "binary", "string"):
            self.lose("wrong_type", f"the value is {type} and {output.type} was requested")
            return None
        try:
            return output.type, types.typed(output.type, value, output.spelling)
        except types.Misfit as misfit:
            self.lose(misfit.code, misfit.message)
            return None

    def _as_carried(self, type: str, bits: bytes) -> tuple[str, bytes] | None:
        """Return the type and bits as the target has them: another type where it has not this one."""
        if type in (self.traits.types or {}).values():
            self.back = type, False
            return type, bits
        try:
            types.check("value", type, bits)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        if type == "char":
            try:
                text = types.untyped(type, bits, "text")
            except types.Misfit as misfit:  # half of a surrogate pair
                self.lose(misfit.code, misfit.message)
                return None
            written, bits, restored = "string", text, Type(type, "text")
        else:
            written, restored = "binary", Type(type, "be")
        loss = self._loss("type_not_carried", f"the type {type} is not carried", str(restored), written)
        self.gate.ledger.lose(loss)
        self.back = str(restored), True
        return written, bits


def _types(requested: object) -> Type | list[Type]:
    if isinstance(requested, str):
        return Type.parse(requested)
    if isinstance(requested, Sequence) and all(isinstance(name, str) for name in requested):
        return [Type.parse(name) for name in requested]
    raise TypeError(f"what a key's values are must be str or a list of str, not {type(requested).__name__}")


def _is_decimal_int32(text: str) -> bool:
    """Return whether a text is the one way to write a number: no plus, no zeros in front, no minus zero."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return False
    return str(int(text)) == text and -(1 << 31) <= int(text) < 1 << 31
