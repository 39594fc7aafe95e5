"""The kinds of keys and values: fifteen names and their codes."""

from __future__ import annotations

from enum import IntEnum

from letterhead.errors import DecodeError

__all__ = ["HeaderKind"]


class HeaderKind(IntEnum):
    """What the bytes of a key or value are.

    A member is its code on the wire. The kind of a header from a later release, whose code has no name here, is a
    member too, without being listed: ``HeaderKind(200)``.

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
        """Give the kind of a code.

        Parameters
        ----------
        code : int
            A byte on the wire.

        Returns
        -------
        HeaderKind
            One of the fifteen.

        Raises
        ------
        DecodeError
            If no kind has the code (``unknown_type``).

        Examples
        --------
        >>> HeaderKind.from_code(3)
        <HeaderKind.BOOL: 3>
        """
        if code not in cls._value2member_map_:
            raise DecodeError(f"value kind code {code} is unknown", format=None, code="unknown_type")
        return cls(code)

    @classmethod
    def parse(cls, name: str) -> HeaderKind:
        """Give the kind of a name, as JSON has it.

        Parameters
        ----------
        name : str
            ``raw``, ``string``, ``bool``, ``int8`` … ``uint128``, ``float32`` or ``float64``.

        Returns
        -------
        HeaderKind
            The kind.

        Raises
        ------
        DecodeError
            If no kind has the name (``unknown_type``).

        Examples
        --------
        >>> HeaderKind.parse("float64")
        <HeaderKind.FLOAT64: 15>
        """
        for kind in cls:
            if str(kind) == name:
                return kind
        names = ", ".join(map(str, cls))
        raise DecodeError(f"a kind of this name is unknown (kinds: {names})", format=None, code="unknown_type")

    @classmethod
    def of_value(cls, type: str) -> HeaderKind | None:
        """Return the kind that a :class:`letterhead.Value` of a type has in Iggy; ``None`` where it has none."""
        if type == "binary":
            return cls.RAW
        if type.startswith("type-"):
            return cls(int(type[5:]))
        return next((member for member in cls if str(member) == type), None)

    @property
    def is_named(self) -> bool:
        """Whether the kind is one of the fifteen."""
        return self._value_ in type(self)._value2member_map_

    @property
    def value_type(self) -> str:
        """The type that a :class:`letterhead.Value` of this kind has."""
        return "binary" if self is HeaderKind.RAW else str(self) if self.is_named else f"type-{self._value_}"

    def as_code(self) -> int:
        """Give the byte on the wire."""
        return self._value_

    def __str__(self) -> str:
        return self._name_.lower() if self.is_named else f"kind-{self._value_}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    @classmethod
    def _missing_(cls, value: object) -> HeaderKind | None:
        # Made each time and kept nowhere: equal by code, as every member is.
        if not isinstance(value, int) or isinstance(value, bool) or not 16 <= value <= 255:
            return None
        made = int.__new__(cls, value)
        made._name_ = f"KIND_{value}"
        made._value_ = value
        return made
