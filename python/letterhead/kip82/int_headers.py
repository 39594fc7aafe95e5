"""Headers with integer keys: those of the second draft, and of the message wrapper.

A block can say that it is in order, by beginning with a header of the least key there is and no value (null), which is
in order itself. That is a convention of ours: the drafts weigh sorted headers and have no mark for them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Self

from letterhead import headers as core
from letterhead.errors import DecodeError, EncodeError
from letterhead.kip82.block import DraftHeaders, GivenHeaders
from letterhead.kip82.layouts import BLOCKS
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.serializers import HeaderSerializer

__all__ = ["IN_ORDER", "IntHeaders"]

IN_ORDER = -(1 << 31)
"""The key that says of a block that it is in order, when its first header has it and is null."""

_MARK = struct.pack(">ii", IN_ORDER, -1)
_KEY_AND_LENGTH = struct.Struct(">ii")


class IntHeaders(DraftHeaders[int]):
    """Headers by integer keys, with bytes for values; read when they are first asked for anything.

    Parameters
    ----------
    headers : bytes-like, mapping or pairs, optional
        The headers as they are on the wire (format ``kip82-int``), or keys and values as :meth:`put` takes them: bytes,
        or what the key's serializer takes, or ``None`` for null.
    serializers : mapping of int to HeaderSerializer, optional
        For the keys whose values are to be other objects than bytes.
    writes : KeyRange, optional
        The keys that may be put, set and removed; those that are there already stay. All, where it is not given.
    in_order : bool, default False
        Keep the headers in ascending order of their keys, and write that they are. Bytes are known to be in order then,
        even where they do not say so.

    Raises
    ------
    DecodeError
        When they are first asked for anything, if the bytes are not headers, or not in the order that they are said to
        be in (``not_in_order``).

    Examples
    --------
    >>> from letterhead.kip82 import RESERVED, IntHeaders
    >>> headers = IntHeaders({1_000_000_001: b"acme", 7: b"cluster-a"}, writes=RESERVED["in-house"])
    Traceback (most recent call last):
        ...
    letterhead.errors.EncodeError: kip82-int: header 1: key 7 is outside the range of its writer, 1000000000 to 2147483647 (in-house)
    >>> headers = IntHeaders({1_000_000_001: b"acme", 7: b"cluster-a"})
    >>> headers.sorted().keys()
    [7, 1000000001]
    >>> block = headers.sorted().as_bytes()
    >>> IntHeaders(block).in_order, IntHeaders(block).up_to(RESERVED["broker"].high).items()
    (True, [(7, b'cluster-a')])
    """

    __slots__ = ("_in_order", "_writes")
    _format = BLOCKS["int"]

    def __init__(
        self,
        headers: GivenHeaders | None = None,
        *,
        serializers: Mapping[int, HeaderSerializer] | None = None,
        writes: KeyRange | None = None,
        in_order: bool = False,
    ) -> None:
        self._writes = writes
        self._in_order = in_order
        super().__init__(headers, serializers=serializers)
        if self._block is not None and self._block.startswith(_MARK):
            self._in_order = True

    @property
    def in_order(self) -> bool:
        """Whether the headers are in ascending order of their keys, and stay in it."""
        return self._in_order

    @property
    def writes(self) -> KeyRange | None:
        """The keys that may be put, set and removed; ``None`` is all of them."""
        return self._writes

    def sorted(self) -> IntHeaders:
        """Make a copy in ascending order of keys, which stays in order and is written with the mark that says so.

        Returns
        -------
        IntHeaders
            The copy. Headers with the same key keep the order among themselves.
        """
        made = self.copy()
        made._read()
        made._in_order = True
        made._sort()
        made._block = None
        return made

    def up_to(self, highest: int) -> IntHeaders:
        """Give the headers whose keys are not above a highest one.

        Of a block that says that it is in order, and that has not been read yet, nothing after them is looked at: not
        read, and not checked.

        Parameters
        ----------
        highest : int
            The highest key wanted, such as the last of a range.

        Returns
        -------
        IntHeaders
            The headers, immutable: they are a part of others.

        Raises
        ------
        DecodeError
            If the bytes are not headers, as far as they are read.

        Examples
        --------
        >>> from letterhead.kip82 import IntHeaders
        >>> block = IntHeaders({1: b"a", 900: b"b"}).sorted().as_bytes()
        >>> IntHeaders(block[:-1]).up_to(10).items()
        [(1, b'a')]
        """
        if self._held is None and self._in_order:
            block = self._block or b""
            part = block[: _end_of(block, highest)]
            return IntHeaders(part, serializers=self._serializers, in_order=True).frozen()
        made = self.copy()
        made._held = core.Headers([(key, value) for key, value in self._pairs() if key <= highest])
        made._block = None
        return made.frozen()

    def writing(self, keys: KeyRange | None) -> IntHeaders:
        """Make a copy in which other keys may be put, set and removed.

        Parameters
        ----------
        keys : KeyRange or None
            Which keys; ``None`` is all.

        Returns
        -------
        IntHeaders
            The copy.
        """
        made = self.copy()
        made._writes = keys
        return made

    def _take_from(self, other: Self) -> None:
        self._writes = other._writes
        self._in_order = other._in_order

    def _parse(self, block: bytes) -> core.Headers:
        read = super()._parse(block)
        if self._in_order:
            _check_order(read)
        return read[1:] if block.startswith(_MARK) else read

    def _wire(self) -> core.Headers:
        held = self._read()
        return core.Headers([(IN_ORDER, None), *held]) if self._in_order else held

    def _add(self, key: int, value: core.HeaderValue) -> None:
        super()._add(key, value)
        if self._in_order:
            self._sort()

    def _sort(self) -> None:
        pairs: list[tuple[int, Any]] = sorted(self._pairs(), key=itemgetter(0))
        self._held = core.Headers(pairs)

    def _adopt(self, headers: core.Headers) -> None:
        marked = bool(headers) and headers[0] == (IN_ORDER, None)
        super()._adopt(headers[1:] if marked else headers)
        if marked:
            self._in_order = True
            _check_order(headers)
        elif self._in_order:
            self._sort()

    def _checked(self, key: Any) -> int:
        self._of_form(key)
        if key == IN_ORDER:
            message = f"the key {key} says that a block is in order: sorted() writes it"
            raise EncodeError(message, format=None, code="out_of_range")
        if self._writes is not None:
            self._writes.check(key, len(self._read()))
        return int(key)

    def _of_form(self, key: Any) -> int:
        if isinstance(key, str):
            message = "the key is text, and those of this layout are numbers"
            raise EncodeError(message, format=self._format, code="key_not_carried", key=str(key))
        if isinstance(key, bool) or not isinstance(key, int):
            raise TypeError(f"a key must be int, not {type(key).__name__}")
        return key

    def _to_held(self, key: int, value: Any) -> core.HeaderValue:
        serializer = self._serializers.get(key)
        if serializer is not None:
            return serializer.to_bytes(key, value)
        return self._held_as(value)

    def _held_as(self, value: Any) -> core.HeaderValue:
        if not isinstance(value, bytes | bytearray | memoryview):
            given = type(value).__name__
            raise TypeError(
                f"a value must be bytes or None, not {given} (a serializer of the key can make bytes of it)"
            )
        return bytes(value)

    def _from_held(self, key: int, value: Any) -> Any:
        serializer = self._serializers.get(key)
        return value if serializer is None else serializer.deserialize(value)


def _end_of(block: bytes, highest: int) -> int:
    """Give where the headers end whose keys are not above the highest, in a block that is in order.

    Keys and lengths alone are looked at, as far as that is needed to skip. What is left is read by the verb, which also
    says what is wrong with it.
    """
    at = 0
    while at + _KEY_AND_LENGTH.size <= len(block):
        key, size = _KEY_AND_LENGTH.unpack_from(block, at)
        if key > highest:
            return at
        at += _KEY_AND_LENGTH.size + max(size, 0)
    return len(block)


def _check_order(headers: core.Headers) -> None:
    pairs: Iterator[tuple[Any, Any]] = iter(headers)  # a number and bytes or null: they were read from such a block
    at, before = 0, IN_ORDER
    for index, (key, value) in enumerate(pairs):
        if key < before:
            message = f"key {key} stands after key {before} in headers that are said to be in order"
            raise DecodeError(message, format=BLOCKS["int"], code="not_in_order", offset=at, header=index, key=str(key))
        at, before = at + _KEY_AND_LENGTH.size + len(value or b""), key
