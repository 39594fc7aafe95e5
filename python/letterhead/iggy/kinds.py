"""Kinds of header keys and values: fifteen names and their codes."""

from __future__ import annotations

from enum import IntEnum

from letterhead.errors import DecodeError

__all__ = ["HeaderKind"]


class HeaderKind(IntEnum):
    """Type of a header key or value.

    The value of a member is its code on the wire. Codes of later releases, such as ``HeaderKind(200)``, are valid kinds
    without a name, and are not listed as members.

    Examples
    --------
    >>> from letterhead.iggy import HeaderKind
    >>> HeaderKind.UINT64.as_code(), str(HeaderKind.UINT64)
    (12, 'uint64')
    >>> HeaderKind.parse("raw"), len(HeaderKind)
    (<HeaderKind.RAW: 1>, 15)
    """

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15

    @classmethod
    def from_code(cls, code: int) -> HeaderKind:
        """Return the named kind with a code.

        Raises
        ------
        DecodeError
            If no named kind has the code (``unknown_type``).
        """
        if code not in cls._value2member_map_:
            raise DecodeError(f"value kind code {code} is unknown", format=None, code="unknown_type")
        return cls(code)

    @classmethod
    def parse(cls, name: str) -> HeaderKind:
        """Return the kind with a name, as in JSON: ``raw``, ``string``, ``bool``, ``int8`` and so on.

        Raises
        ------
        DecodeError
            If no kind has the name (``unknown_type``).
        """
        for kind in cls:
            if str(kind) == name:
                return kind
        names = ", ".join(map(str, cls))
        raise DecodeError(f"a kind of this name is unknown (kinds: {names})", format=None, code="unknown_type")

    @classmethod
    def _of_value(cls, type: str) -> HeaderKind | None:
        """Return the kind for a type of :class:`letterhead.Value`, or None if Iggy does not support the type."""
        if type.startswith("type-"):
            return cls(int(type[5:]))
        return _OF_VALUES.get(type)

    @property
    def _is_named(self) -> bool:
        """Whether the kind has a name."""
        return self._value_ in type(self)._value2member_map_

    @property
    def _value_type(self) -> str:
        """Type of :class:`letterhead.Value` that corresponds to this kind."""
        return "binary" if self is HeaderKind.RAW else str(self) if self._is_named else f"type-{self._value_}"

    def as_code(self) -> int:
        """Return the code on the wire."""
        return self._value_

    def __str__(self) -> str:
        return self._name_.lower() if self._is_named else f"kind-{self._value_}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    @classmethod
    def _missing_(cls, value: object) -> HeaderKind | None:
        # Create a new object for each call, because members with equal codes are equal.
        if not isinstance(value, int) or isinstance(value, bool) or not 16 <= value <= 255:
            return None
        kind = int.__new__(cls, value)
        kind._name_ = f"KIND_{value}"
        kind._value_ = value
        return kind


_OF_VALUES = {kind._value_type: kind for kind in HeaderKind}
