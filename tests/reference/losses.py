"""What a target can carry of the headers of a message, and what it cannot: computed header by header, never for a pair.

A header goes through four gates, in this order: its key, a null value, the kind of its value, its value. The first that
leaves it out ends its way. What a gate changes or leaves out is a :class:`~letterhead.results.Loss`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from letterhead.errors import check_name, unknown_name
from letterhead.results import Loss
from reference import keys, kinds, types
from reference.formats import Format
from reference.keys import Key
from reference.parts import misfit_of_length
from reference.walk import Outgoing, Refused

ON_LOSS = ("raise", "drop", "report")

KindsGiven = str | Mapping[Any, str | Sequence[str]] | None
"""How values lose or get their kinds: ``"be"``, ``"le"``, ``"text"``, ``"binary"``, or a type for each key."""


class Losses(tuple[Loss, ...]):
    """The losses of one message, in the order in which they were met.

    Attributes
    ----------
    kinds : dict
        What gives the values their kinds again: key to type, or to a list of types where the key stands more than once
        with different ones. It can be handed back as ``kinds``.
    """

    kinds: dict[Key, str | list[str]]

    def __new__(cls, losses: Iterable[Loss] = (), kinds: Mapping[Key, str | list[str]] | None = None) -> Losses:
        """Make one of losses, and of what gives their values their kinds again."""
        made = super().__new__(cls, losses)
        made.kinds = dict(kinds or {})
        return made


class Ledger:
    """Where losses are noted as they are met."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.first: Loss | None = None
        """The first that nobody agreed to."""
        self.stood: list[tuple[Key, str, bool]] = []
        """For every value that was written under a kind or without the one it had: its key, the type that gives its
        kind again, and whether it lost it."""

    def lose(self, loss: Loss) -> None:
        """Note a loss that nobody agreed to."""
        self.losses.append(loss)
        self.first = self.first or loss

    def agreed(self, loss: Loss) -> None:
        """Note a loss that the caller asked for."""
        self.losses.append(loss)

    def report(self) -> Losses:
        """Give the losses, and how to undo those of kinds."""
        lost = {key for key, _, was_lost in self.stood if was_lost}
        back: dict[Key, list[str]] = {}
        for key, type, _ in self.stood:
            if key in lost:
                back.setdefault(key, []).append(type)
        return Losses(self.losses, {key: each if len(set(each)) > 1 else each[0] for key, each in back.items()})


class Type(NamedTuple):
    """A kind, and how the bytes that are to have it spell the value."""

    kind: str
    spelling: str

    @classmethod
    def parse(cls, text: str) -> Type:
        """Read ``name[:be|le|text]`` or ``kind-200``."""
        if text in kinds.UNNAMED.values():
            return cls(text, "be")
        name, spelling = types.parse(text)
        if not kinds.is_kind(name):
            raise unknown_name("kind", name, [row.name for row in kinds.KINDS])
        if spelling == "amqp":
            raise ValueError(f"kind '{text}': values are read as AMQP, and not converted from it")
        return cls(name, spelling)

    def __str__(self) -> str:
        plain = self.spelling == "be" or self.kind not in types.WIDTHS
        return self.kind if plain else f"{self.kind}:{self.spelling}"


class Asked:
    """How the values of a call lose or get their kinds.

    Raises
    ------
    TypeError, ValueError
        If that makes no sense for the target.
    """

    def __init__(self, given: KindsGiven, row: Format) -> None:
        self.spelling: str | None = None
        self.binary = False
        self.each: list[tuple[Key, Type | list[Type]]] = []
        if given is None:
            return
        if isinstance(given, Mapping):
            self.each = [(keys.given(key), _types(asked)) for key, asked in given.items()]
        else:
            check_name("kinds", given, (*types.SUFFIXES, "binary"))
            self.binary = given == "binary"
            self.spelling = None if self.binary else given
        if row.traits.kinds is None and self.spelling is None:
            raise ValueError(
                f'kinds={{key: kind}} and kinds="binary" give values a kind, and {row.name} carries none: '
                'give kinds="be", "le" or "text"'
            )
        if row.traits.kinds is not None and self.spelling is not None:
            raise ValueError(
                f'kinds="be", "le" and "text" write values without their kinds, and {row.name} has kinds: '
                'give kinds={key: kind} or kinds="binary"'
            )


class Gate:
    """What the headers of one message go through, one after the other.

    Parameters
    ----------
    row : Format
        The target.
    asked : Asked
        How values lose or get their kinds.
    ledger : Ledger
        Where losses are noted.
    converting : bool
        Bits that are no value of their kind are a loss; otherwise they are the caller's fault.
    from_typed_keys : bool
        The headers come from a format with typed keys, where text that spells a number is not that number.
    """

    def __init__(
        self, row: Format, asked: Asked, ledger: Ledger, *, converting: bool, from_typed_keys: bool = False
    ) -> None:
        self.row = row
        self.traits = row.traits
        self.asked = asked
        self.ledger = ledger
        self.converting = converting
        self.from_typed_keys = from_typed_keys
        self.times: dict[int, int] = {}

    def carry(self, header: int, key: Key, kind: str | None, value: bytes | None) -> Outgoing | None:
        """Make a header ready to be written; none where it is left out."""
        way = _Way(self, header, key)
        if not way.key_gate():
            return None
        if value is None:
            if self.traits.nulls:
                return way.outgoing(None, None)
            way.lose("null_not_carried", "the value is null")
            return None
        untyped = self.traits.kinds is None
        kinded = way.untyped(kind, value) if untyped else way.typed(kind, value)
        if kinded is None or not way.length_fits("value", len(kinded[1])):
            return None
        if way.back is not None:
            self.ledger.stood.append((way.target, *way.back))
        return way.outgoing(*kinded)

    def said_of(self, source: Key, target: Key) -> Type | None:
        """Give what was said of a key, as it was or as it is written, this time that it stands with a value."""
        texts = {keys.spell(source), keys.spell(target)}
        for place, (wanted, said) in enumerate(self.asked.each):
            # The reports of losses show keys in words, and those can be handed back as well.
            if wanted in (source, target) or (isinstance(wanted, str) and wanted in texts):
                time = self.times[place] = self.times.get(place, -1) + 1
                if isinstance(said, Type):
                    return said
                return said[time] if time < len(said) else None
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

    def outgoing(self, kind: str | None, value: bytes | None) -> Outgoing:
        key: Any = keys.typed(self.target) if self.traits.keys == "typed" else self.target
        return Outgoing(self.header, keys.spell(self.key), key.encode() if isinstance(key, str) else key, kind, value)

    def lose(self, code: str, message: str) -> None:
        """Note that the header is left out."""
        self.gate.ledger.lose(self._loss(code, message))

    def _loss(self, code: str, message: str, kind: str | None = None, written: str | None = None) -> Loss:
        # A key that changed is told as it is written, so that `kinds` can be handed back; a typed one says the same.
        key = self.key if self.traits.keys == "typed" else self.target
        return Loss(code, message, self.header, keys.spell(key), kind, written)

    def _misfit(self, misfit: types.Misfit, what: str = "") -> None:
        """Leave out bits that are no value of their kind, or refuse them where the caller made them."""
        if not self.gate.converting:
            raise Refused(misfit.code, what + misfit.message, self.header, keys.spell(self.key))
        self.lose(misfit.code, what + misfit.message)

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
        kind, bits = keys.typed(target)
        if not self.length_fits("key", len(bits)):
            return False
        try:
            types.check(self.traits.checks, kind, bits)
        except types.Misfit as misfit:
            self._misfit(misfit, "key of ")
            return False
        return True

    def _to_text(self) -> str | None:
        if isinstance(self.key, str):
            return self.key
        kind, bits = keys.typed(self.key)
        text = types.text_of(kind, bits)
        if text is None:
            self.lose("key_not_carried", f"the key is {kind} and has no text form")
        else:
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {kind}", written="text"))
        return text

    def _to_int(self) -> int | None:
        if isinstance(self.key, int):
            return self.key
        kind, bits = keys.typed(self.key)
        text = types.text_of(kind, bits) if kind == "string" or kind in types.INTEGERS else None
        if text is None or not _is_decimal_int32(text):
            self.lose("key_not_carried", "the key is no decimal int32")
            return None
        if kind != "int32" and (kind != "string" or self.gate.from_typed_keys):
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {kind}", written="int32"))
        return int(text)

    def _to_typed(self) -> Key | None:
        kind, bits = keys.typed(self.key)
        if kind in (self.traits.kinds or {}).values():
            return keys.plain(kind, bits)
        text = types.text_of(kind, bits)
        if text is None:
            self.lose("key_not_carried", f"the key is {kind} and has no text form")
        else:
            self.gate.ledger.lose(self._loss("key_not_carried", f"the key is {kind}", written="string"))
        return text

    # --- the value ---------------------------------------------------------------------------------------------------

    def length_fits(self, part: str, size: int) -> bool:
        """Leave the header out if a part is shorter or longer than the target can have."""
        misfit = misfit_of_length(part, size, self.traits.lengths)
        if misfit is not None:
            self.lose(*misfit)
        return misfit is None

    def untyped(self, kind: str | None, value: bytes) -> tuple[None, bytes] | None:
        """Write a value without its kind."""
        if kind is None:
            return None, value
        spelling = self.gate.asked.spelling
        if spelling is None:
            how = 'pass kinds="be", "le" or "text" (--kinds be)'
            self.lose("kind_not_carried", f"{self.gate.row.name} carries no kinds: {how} to write {kind} values")
            return None
        try:
            # A kind that is lost can only be given back to bits that are a value of it.
            types.check("value", kind, value)
            written = types.untyped(kind, value, spelling)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        as_what = {"be": "big-endian", "le": "little-endian", "text": "text"}[spelling]
        as_what = as_what if kind in types.WIDTHS else "as it is"
        # All NaNs are spelled alike: only one of them comes back as it was.
        comes_back = spelling != "text" or not types.is_other_nan(kind, value)
        back = str(Type(kind, spelling))
        message = f"the kind {kind} is not carried"
        self.gate.ledger.agreed(self._loss("kind_not_carried", message, back if comes_back else None, as_what))
        self.back = back, True
        return None, written

    def typed(self, kind: str | None, value: bytes) -> tuple[str, bytes] | None:
        """Find the kind under which a value is written, and its bits."""
        known = self._as_asked(kind, value)
        carried = known and self._as_carried(*known)
        if carried is None:
            return None
        try:
            types.check(self.traits.checks, *carried)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        return carried

    def _as_asked(self, kind: str | None, value: bytes) -> tuple[str, bytes] | None:
        said = self.gate.said_of(self.key, self.target)
        if said is None:
            kind = kind or ("binary" if self.gate.asked.binary else None)
            if kind is None:
                how = 'pass kinds={"retry": "int32"} (--kind retry=int32) or kinds="binary" (--kinds binary)'
                self.lose("unknown_kind", f"{self.gate.row.name} values need a kind: {how}")
                return None
            return kind, value
        if kind == said.kind:
            return kind, value
        if kind not in (None, "binary", "string"):
            self.lose("wrong_kind", f"the value is {kind} and {said.kind} was asked for")
            return None
        try:
            return said.kind, types.typed(said.kind, value, said.spelling)
        except types.Misfit as misfit:
            self.lose(misfit.code, misfit.message)
            return None

    def _as_carried(self, kind: str, bits: bytes) -> tuple[str, bytes] | None:
        """Give the kind and bits as the target has them: another kind where it has not this one."""
        if kind in (self.traits.kinds or {}).values():
            self.back = kind, False
            return kind, bits
        try:
            types.check("value", kind, bits)
        except types.Misfit as misfit:
            self._misfit(misfit)
            return None
        if kind == "char":
            try:
                text = types.untyped(kind, bits, "text")
            except types.Misfit as misfit:  # half of a surrogate pair
                self.lose(misfit.code, misfit.message)
                return None
            written, bits, back = "string", text, Type(kind, "text")
        else:
            written, back = "binary", Type(kind, "be")
        loss = self._loss("kind_not_carried", f"the kind {kind} is not carried", str(back), written)
        self.gate.ledger.lose(loss)
        self.back = str(back), True
        return written, bits


def _types(asked: object) -> Type | list[Type]:
    if isinstance(asked, str):
        return Type.parse(asked)
    if isinstance(asked, Sequence) and all(isinstance(each, str) for each in asked):
        return [Type.parse(each) for each in asked]
    raise TypeError(f"what a key's values are must be str or a list of str, not {type(asked).__name__}")


def _is_decimal_int32(text: str) -> bool:
    """Say whether a text is the one way to write a number: no plus, no zeros in front, no minus zero."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return False
    return str(int(text)) == text and -(1 << 31) <= int(text) < 1 << 31
