"""Headers with integer keys: those of the second draft, and of the message wrapper.

The draft leaves the order of headers free, and nothing in the bytes says that they are sorted. A reader that knows that
a block is sorted passes ``in_order=True``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Self

from letterhead import headers as core
from letterhead.errors import DecodeError, EncodeError
from letterhead.kip82.block import DraftHeaders, GivenHeaders, HeaderErrors
from letterhead.kip82.layouts import BLOCKS
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.serializers import HeaderSerializer

__all__ = ["IntHeaders"]

_KEY_AND_LENGTH = struct.Struct(">ii")


class IntHeaders(DraftHeaders[int]):
    """Headers with integer keys and bytes for values, parsed on first access.

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
        Keep the headers in ascending order of their keys. Bytes must be in that order already: :meth:`up_to` then stops
        at the first key that is too high.
    errors : {"raise", "null"}, default "raise"
        What the first access does if the bytes are not headers: raise, or read them as no headers. ``error`` tells
        why.

    Raises
    ------
    DecodeError
        On every access, if the bytes are not headers, or not in order with ``in_order=True`` (``not_in_order``), and
        ``errors="raise"``.

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
    >>> IntHeaders(block, in_order=True).up_to(RESERVED["broker"].high).items()
    [(7, b'cluster-a')]
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
        errors: HeaderErrors = "raise",
    ) -> None:
        self._writes = writes
        self._in_order = in_order
        super().__init__(headers, serializers=serializers, errors=errors)

    @property
    def in_order(self) -> bool:
        """Whether the headers are in ascending order of their keys, and stay in it."""
        return self._in_order

    @property
    def writes(self) -> KeyRange | None:
        """The keys that may be put, set and removed; ``None`` is all of them."""
        return self._writes

    def sorted(self) -> IntHeaders:
        """Return a copy in ascending order of keys, which stays in order when headers are added.

        Returns
        -------
        IntHeaders
            The copy. Headers with the same key keep their order.

        Examples
        --------
        >>> from letterhead.kip82 import IntHeaders
        >>> IntHeaders([(9, b"x"), (1, b"a")]).sorted().items()
        [(1, b'a'), (9, b'x')]
        """
        made = self.copy()
        made._read()
        made._in_order = True
        made._sort()
        made._block = None
        return made

    def up_to(self, highest: int) -> IntHeaders:
        """Return the headers with keys up to a highest one.

        With ``in_order=True``, unparsed bytes are read up to the first higher key: the rest is neither parsed nor
        validated.

        Parameters
        ----------
        highest : int
            The highest key wanted, such as the last of a range.

        Returns
        -------
        IntHeaders
            The headers, immutable.

        Raises
        ------
        DecodeError
            If the bytes that are read are not headers.

        Examples
        --------
        >>> from letterhead.kip82 import IntHeaders
        >>> block = IntHeaders({1: b"a", 900: b"b"}).sorted().as_bytes()
        >>> IntHeaders(block[:-1], in_order=True).up_to(10).items()
        [(1, b'a')]
        """
        if self._held is None and self._in_order:
            block = self._block or b""
            part = block[: _end_of(block, highest)]
            return IntHeaders(part, serializers=self._serializers, in_order=True, errors=self._errors).frozen()
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
        return read

    def _add(self, key: int, value: core.HeaderValue) -> None:
        super()._add(key, value)
        if self._in_order:
            self._sort()

    def _sort(self) -> None:
        pairs: list[tuple[int, Any]] = sorted(self._pairs(), key=itemgetter(0))
        self._held = core.Headers(pairs)

    def _adopt(self, headers: core.Headers) -> None:
        super()._adopt(headers)
        if self._in_order:
            self._sort()

    def _checked(self, key: Any) -> int:
        self._of_form(key)
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
    """Return where the headers with keys up to the highest end, in a block that is in order.

    Only keys and lengths are read. The headers before that place are parsed by the core, which reports their errors.
    """
    at = 0
    while at + _KEY_AND_LENGTH.size <= len(block):
        key, size = _KEY_AND_LENGTH.unpack_from(block, at)
        if key > highest:
            return at
        at += _KEY_AND_LENGTH.size + max(size, 0)
    return len(block)


def _check_order(headers: core.Headers) -> None:
    """Raise if keys are not in ascending order."""
    pairs: Iterator[tuple[Any, Any]] = iter(headers)  # parsed from integer keys: a number, and bytes or null
    at, before = 0, None
    for index, (key, value) in enumerate(pairs):
        if before is not None and key < before:
            message = (
                f"key {key} comes after key {before}, and in_order=True was passed: leave it out to read any order"
            )
            raise DecodeError(
                message, format=BLOCKS["int"], code="not_in_order", byte_offset=at, header=index, key=str(key)
            )
        at, before = at + _KEY_AND_LENGTH.size + len(value or b""), key
