"""The one checked reader: it knows where it is in its cell, and every fault it finds says so.

A fault is *hard* when what follows cannot be found any more: :class:`Broken` is raised. It is *soft* when the walk can
go on: it is noted in ``faults``. The byte of a fault is where the field that failed begins.
"""

from __future__ import annotations

from letterhead.errors import Fault, counted
from letterhead.reference import varint


class Broken(Exception):
    """A hard fault ended the walk."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class Cursor:
    """A place in a cell and the end of what may be read.

    Parameters
    ----------
    cell : bytes
        The whole cell; places are counted from its first byte.
    at, end : int, optional
        The part that may be read.
    lenient : bool, default False
        Whether a varint may lose bits.
    faults : list of Fault, optional
        Where soft faults are noted.
    """

    def __init__(
        self,
        cell: bytes,
        at: int = 0,
        end: int | None = None,
        *,
        lenient: bool = False,
        faults: list[Fault] | None = None,
    ) -> None:
        self.cell = cell
        self.at = at
        self.end = len(cell) if end is None else end
        self.lenient = lenient
        self.faults: list[Fault] = [] if faults is None else faults
        self.header: int | None = None
        self.key: str | None = None

    @property
    def left(self) -> int:
        """How many bytes may still be read."""
        return self.end - self.at

    def enter_header(self, index: int | None) -> None:
        """Say which header faults belong to from here on."""
        self.header = index
        self.key = None

    def hard(self, code: str, message: str, byte: int) -> Broken:
        """Make the exception that ends the walk."""
        return Broken(Fault(code, message, byte, self.header, self.key))

    def soft(self, code: str, message: str, byte: int) -> None:
        """Note a fault that leaves the rest readable."""
        self.faults.append(Fault(code, message, byte, self.header, self.key))

    def take(self, size: int, field: str) -> bytes:
        """Take bytes; fewer are a fault at the place where they should begin."""
        if size > self.left:
            raise self.hard("truncated", too_short(field, size, self.left), self.at)
        taken = self.cell[self.at : self.at + size]
        self.at += size
        return taken

    def take_rest(self) -> bytes:
        """Take all bytes that are left."""
        return self.take(self.left, "rest")

    def split(self, size: int, field: str) -> Cursor:
        """Make a cursor over the next bytes, and step over them."""
        start = self.at
        self.take(size, field)
        return Cursor(self.cell, start, self.at, lenient=self.lenient, faults=self.faults)

    def varint(self, field: str) -> int:
        """Read a zig-zag varint of 32 bits."""
        try:
            read = varint.read_unsigned(self.cell[self.at : self.end])
        except varint.Truncated:
            raise self.hard("truncated", f"the bytes end inside the {field}", self.at) from None
        except varint.TooLong:
            raise self.hard(
                "varint_too_long", f"the varint of the {field} goes on after its fifth byte", self.at
            ) from None
        if read.lost and not self.lenient:
            message = f"the varint of the {field} has bits that 32 bits cannot hold"
            raise self.hard("varint_lost_bits", message, self.at)
        self.at += read.size
        return varint.unzigzag(read.bits)

    def length(self, field: str) -> int:
        """Read how many bytes follow."""
        start = self.at
        length = self.varint(field)
        if length < 0:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return length

    def nullable_length(self, field: str) -> int | None:
        """Read how many bytes follow, or -1 for null."""
        start = self.at
        length = self.varint(field)
        if length < -1:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return None if length == -1 else length


def too_short(field: str, wanted: int, left: int) -> str:
    """Say that a field takes more bytes than are left."""
    return f"{field} takes {counted(wanted, 'byte')} and {left} {'is' if left == 1 else 'are'} left"
