"""Headers with integer keys: the second draft and the message wrapper.

The draft does not specify an order, and the bytes do not indicate whether headers are sorted. Pass
``in_order=True`` if they are known to be sorted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Self

from letterhead import headers as core
from letterhead.errors import DecodeError, EncodeError
from letterhead.kip82.draft_headers import DraftHeaders, HeaderErrors, HeadersInput
from letterhead.kip82.header_formats import HEADERS_FORMATS
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.serializers import HeaderSerializer

__all__ = ["IntHeaders"]

_KEY_AND_LENGTH = struct.Struct(">ii")


class IntHeaders(DraftHeaders[int]):
    """Headers with integer keys and bytes as values, parsed on first access.

    Parameters
    ----------
    headers : bytes-like, mapping or pairs, optional
        Encoded headers (format ``kip82-int``), or keys and values: bytes, an object if the key has a serializer, or
        ``None`` for null.
    serializers : mapping of int to HeaderSerializer, optional
        Serializers by key, for values that are not bytes.
    writes : KeyRange, optional
        The keys that may be put, set and removed; by default all. Existing headers with other keys stay.
    in_order : bool, default False
        Keep the headers in ascending order of their keys. Encoded headers must already have this order, which lets
        :meth:`up_to` stop at the first higher key.
    errors : {"raise", "null"}, default "raise"
        What to do if the bytes cannot be parsed on first access: raise, or behave as if there were no headers. The
        reason is in ``error``.

    Raises
    ------
    DecodeError
        With ``errors="raise"``, on every access, if the bytes cannot be parsed, or if ``in_order=True`` and the keys are
        not in order (``not_in_order``).

    Examples
    --------
    >>> from letterhead.kip82 import IntHeaders, KeyRange
    >>> headers = IntHeaders({10: b"acme", 7: b"cluster-a"}, writes=KeyRange(10, 99, "billing"))
    Traceback (most recent call last):
        ...
    letterhead.errors.EncodeError: kip82-int: key 7 is outside the range of its writer, 10 to 99 (billing) (header 1)
    >>> headers = IntHeaders({10: b"acme", 7: b"cluster-a"})
    >>> headers.sorted().keys()
    [7, 10]
    >>> encoded = headers.sorted().as_bytes()
    >>> IntHeaders(encoded, in_order=True).up_to(9).items()
    [(7, b'cluster-a')]
    """

    __slots__ = ("_in_order", "_writes")
    _format = HEADERS_FORMATS["int"]

    def __init__(
        self,
        headers: HeadersInput | None = None,
        *,
        serializers: Mapping[int, HeaderSerializer] | None = None,
        writes: KeyRange | None = None,
        in_order: bool = False,
        errors: HeaderErrors = "raise",
    ) -> None:
        self._writes = writes
        self._in_order = in_order
        super().__init__(headers, serializers=serializers, errors=errors)

    def sorted(self) -> IntHeaders:
        """Return a copy sorted by key; headers added later are inserted in order.

        Headers with the same key keep their order.

        Examples
        --------
        >>> from letterhead.kip82 import IntHeaders
        >>> IntHeaders([(9, b"x"), (1, b"a")]).sorted().items()
        [(1, b'a'), (9, b'x')]
        """
        copied = self.copy()
        copied._change()
        copied._in_order = True
        copied._sort()
        return copied

    def up_to(self, highest: int) -> IntHeaders:
        """Return an immutable copy with the headers whose keys are at most ``highest``.

        With ``in_order=True``, unparsed bytes are read only up to the first higher key; the rest is neither parsed nor
        validated.

        Examples
        --------
        >>> from letterhead.kip82 import IntHeaders
        >>> encoded = IntHeaders({1: b"a", 900: b"b"}).sorted().as_bytes()
        >>> IntHeaders(encoded[:-1], in_order=True).up_to(10).items()
        [(1, b'a')]
        """
        if self._stored is None and self._in_order:
            encoded = self._encoded or b""
            part = encoded[: _end_of(encoded, highest)]
            return IntHeaders(part, serializers=self._serializers, in_order=True, errors=self._errors).frozen()
        copied = self.copy()
        copied._stored = core.Headers([(key, value) for key, value in self._pairs() if key <= highest])
        copied._encoded = None
        return copied.frozen()

    def _writing(self, keys: KeyRange | None) -> IntHeaders:
        """Return a copy in which only keys of a range may be put, set and removed; ``None`` allows all keys."""
        copied = self.copy()
        copied._writes = keys
        return copied

    def _copy_options(self, source: Self) -> None:
        self._writes, self._in_order = source._writes, source._in_order

    def _parse(self, encoded: bytes) -> core.Headers:
        headers = super()._parse(encoded)
        if self._in_order:
            _check_order(headers)
        return headers

    def _add(self, key: int, value: core.HeaderValue) -> None:
        super()._add(key, value)
        if self._in_order:
            self._sort()

    def _sort(self) -> None:
        pairs: list[tuple[int, Any]] = sorted(self._pairs(), key=itemgetter(0))
        self._stored = core.Headers(pairs)

    def _check_written_key(self, key: Any) -> int:
        key = self._check_key(key)
        if self._writes is not None:
            self._writes._check(key, len(self._read()))
        return int(key)

    def _check_key(self, key: Any) -> int:
        if isinstance(key, str):
            message = "the key is text, and this header format has integer keys"
            raise EncodeError(message, format=self._format, code="key_not_carried", key=str(key))
        if isinstance(key, bool) or not isinstance(key, int):
            raise TypeError(f"a key must be int, not {type(key).__name__}")
        return key

    def _check_value(self, value: Any) -> core.HeaderValue:
        if not isinstance(value, bytes | bytearray | memoryview):
            hint = "pass serializers= for the keys of other objects"
            raise TypeError(f"a value must be bytes or None, not {type(value).__name__}: {hint}")
        return bytes(value)


def _end_of(encoded: bytes, highest: int) -> int:
    """Return the end position of the headers with keys up to ``highest`` in sorted encoded headers.

    Only keys and lengths are read here; the core parses the headers before this position, and reports their errors.
    """
    at = 0
    while at + _KEY_AND_LENGTH.size <= len(encoded):
        key, size = _KEY_AND_LENGTH.unpack_from(encoded, at)
        if key > highest:
            return at
        at += _KEY_AND_LENGTH.size + max(size, 0)
    return len(encoded)


def _check_order(headers: core.Headers) -> None:
    """Raise if keys are not in ascending order."""
    pairs: Iterator[tuple[Any, Any]] = iter(headers)  # integer keys, and values of bytes or null
    at, before = 0, None
    for index, (key, value) in enumerate(pairs):
        if before is not None and key < before:
            message = f"key {key} comes after key {before}: leave out in_order=True to read any order"
            position: dict[str, Any] = {"byte_offset": at, "header": index, "key": str(key)}
            raise DecodeError(message, format=HEADERS_FORMATS["int"], code="not_in_order", **position)
        at, before = at + _KEY_AND_LENGTH.size + len(value or b""), key
