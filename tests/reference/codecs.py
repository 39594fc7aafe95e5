"""The codecs of compressed messages, read in plain Python and never past a limit.

::

    gzip     members of RFC 1952, one or several

    snappy   varint32 content_len, elements to the end                     (bare)
             82 "SNAPPY" 0, i32 version, i32 compatible,
             then i32 block_len, bare block, repeated to the end           (xerial, as Kafka writes it; big-endian)
    element  ┌──────────────┬──────┐  tag bits 0–1:  0 literal: the bytes follow, as many as bits 2–7 say, plus one;
             │ u8 tag       │ …    │                    60 to 63 there: the length stands in 1 to 4 bytes behind the tag
             └──────────────┴──────┘                 1 copy of 4–11 bytes, 11 bits of distance
                                                     2 copy of 1–64 bytes, u16 distance    3 the same, u32 distance

    lz4      04 22 4d 18, u8 flags, u8 size, [u64 content_len], u8 check,
             then u32 block_len, block, [u32 XXH32], repeated; a length of 0, [u32 XXH32 of the content]
    block    ┌──────────┬──────────────┬──────────┬────────────────┬──────────────┐
             │ u8 token │ more lengths │ literals │ u16 distance   │ more lengths │  repeated, ends after literals
             └──────────┴──────────────┴──────────┴────────────────┴──────────────┘
             token: high half the literals, low half the copy less 4; 15 goes on in bytes that are added up to one below 255

    zstd     frames of RFC 8878, one or several; the package ``zstandard`` reads them, which Python itself cannot yet

All of them but xerial's framing are little-endian. The ``check`` of an LZ4 frame is the second byte of the XXH32 of flags
to content_len; Kafka's message format 0 was written with one over the magic too.

Data that end too early, go on after their end or fail a checksum are refused.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from letterhead._optional_dependencies import install_hint
from letterhead.limits import DECOMPRESSED_BYTES
from tests.reference.xxh3 import xxh32

NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""The codecs by the three lowest attribute bits."""

_TOO_EARLY = "it ends too early"
_LEFT_OVER = "bytes are left after its end"
_BLOCK_IS_WRONG = "a block is wrong"

_GZIP_MAGIC = b"\x1f\x8b"

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_MAX_RATIO = 22
"""More content than a byte can stand for: the best element makes 64 bytes out of 3."""

_SNAPPY_BLOCK_LEN = 1 << 15
_LZ4_BLOCK_LEN = 1 << 16
"""Content of a block, as Kafka's writers divide it."""

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_MAX_RATIO = 255
"""More content than a byte of a block can stand for: a byte of a long length adds 255."""
_INDEPENDENT, _BLOCK_CHECKSUMS, _CONTENT_LEN, _CONTENT_CHECKSUM, _RESERVED, _DICTIONARY = 32, 16, 8, 4, 2, 1
_STORED = 1 << 31
"""The top bit of a block's length: the block is not compressed."""

_ZSTD_MAX_WINDOW_LEN = 128 << 20
"""The largest window that Kafka reads, and that the highest levels write."""
_ZSTD_PIECE_LEN = 256
"""How much is given to the decoder at a time: four bytes can stand for a block of 128 KiB, and all that comes is kept."""


class Undecodable(Exception):
    """Data that a codec cannot give back."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def decompress(codec: int, data: bytes, *, legacy: bool = False, limit: int = DECOMPRESSED_BYTES) -> bytes:
    """Decompress the content of a codec; ``legacy`` allows LZ4 the header checksum of Kafka's message format 0."""
    content = _Content(NAMES[codec], limit)
    if codec == 1:
        _gzip(data, content)
    elif codec == 2:
        _snappy(data, content)
    elif codec == 3:
        _lz4(_Input(data, content.corrupt), content, legacy=legacy)
    else:
        _zstd(data, content)
    return bytes(content.produced)


def compress(codec: int, data: bytes, *, legacy: bool = False) -> bytes:
    """Write content in a codec of message sets; snappy and LZ4 store it as it is, which every reader takes.

    ``legacy`` writes the LZ4 header checksum of Kafka's message format 0.
    """
    if codec == 1:
        member = zlib.compressobj(wbits=31)
        return member.compress(data) + member.flush()
    if codec == 2:
        blocks = [data[at : at + _SNAPPY_BLOCK_LEN] for at in range(0, len(data), _SNAPPY_BLOCK_LEN)]
        return _XERIAL_MAGIC + struct.pack(">ii", 1, 1) + b"".join(map(_xerial_block, blocks))
    header = _LZ4_MAGIC + bytes([1 << 6 | _INDEPENDENT, 4 << 4])
    check = xxh32(header if legacy else header[len(_LZ4_MAGIC) :]) >> 8 & 0xFF
    blocks = [data[at : at + _LZ4_BLOCK_LEN] for at in range(0, len(data), _LZ4_BLOCK_LEN)]
    stored = b"".join(struct.pack("<I", len(block) | _STORED) + block for block in blocks)
    return header + bytes([check]) + stored + bytes(4)


def _xerial_block(content: bytes) -> bytes:
    """Write a block of snappy that is one literal, behind its length."""
    size = len(content)
    varint = bytes(size >> shift & 0x7F | (0x80 if size >> shift + 7 else 0) for shift in (0, 7, 14) if size >> shift)
    block = varint + bytes([61 << 2]) + (size - 1).to_bytes(2, "little") + content
    return struct.pack(">i", len(block)) + block


def too_large(limit: int) -> Undecodable:
    """Return the error of data that would become more bytes than a limit."""
    return Undecodable("decompressed_too_large", f"decompressed data would pass {limit} bytes")


class _Content:
    """What came out so far, and how much there may be."""

    def __init__(self, codec: str, limit: int) -> None:
        self.codec = codec
        self.limit = limit
        self.produced = bytearray()

    @property
    def room(self) -> int:
        return self.limit - len(self.produced)

    def add(self, part: bytes) -> None:
        if len(part) > self.room:
            raise self.too_large()
        self.produced += part

    def too_large(self) -> Undecodable:
        return too_large(self.limit)

    def corrupt(self, why: str) -> Undecodable:
        return Undecodable("bad_compression", f"the {self.codec} data is corrupt: {why}")


class _Input:
    """What is still to be read."""

    def __init__(self, data: bytes, corrupt: Callable[[str], Undecodable], too_early: str = _TOO_EARLY) -> None:
        self.data = data
        self.at = 0
        self.corrupt = corrupt
        self.too_early = too_early

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise self.corrupt(self.too_early)
        self.at += size
        return self.data[self.at - size : self.at]

    def little(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def big(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big", signed=True)


# --- gzip ------------------------------------------------------------------------------------------------------------


def _gzip(data: bytes, content: _Content) -> None:
    while True:
        member = zlib.decompressobj(wbits=31)
        try:
            # One byte more than there is room for tells content that is too large from content that just fits.
            content.add(member.decompress(data, content.room + 1))
        except zlib.error:
            raise content.corrupt("a header, block or checksum is wrong") from None
        if not member.eof:
            raise content.corrupt(_TOO_EARLY)
        data = member.unused_data
        if not data:
            return
        if not data.startswith(_GZIP_MAGIC):
            raise content.corrupt(_LEFT_OVER)


# --- snappy ----------------------------------------------------------------------------------------------------------


def _snappy(data: bytes, content: _Content) -> None:
    if not data.startswith(_XERIAL_MAGIC):
        _snappy_block(data, content)
        return
    framed = _Input(data[len(_XERIAL_MAGIC) :], content.corrupt)
    version = framed.big(4)
    if version < 1:
        raise content.corrupt(f"version {version} of its framing is unknown")
    framed.big(4)  # the oldest version that can read it: writers do not agree on its byte order
    while framed.left:
        size = framed.big(4)
        if size < 0:
            raise content.corrupt(f"the length {size} of a block is negative")
        _snappy_block(framed.take(size), content)


def _snappy_block(data: bytes, content: _Content) -> None:
    if not data:
        raise content.corrupt(_TOO_EARLY)
    block = _Input(data, content.corrupt, too_early=_BLOCK_IS_WRONG)
    announced = _varint32(block)
    if announced > content.room:
        raise content.too_large()
    if announced > len(data) * _SNAPPY_MAX_RATIO:
        raise content.corrupt("a block announces more than it could hold")
    result = bytearray()
    while block.left:
        tag = block.little(1)
        size = (tag >> 2) + 1
        match tag & 3:
            case 0:
                result += block.take(size if size <= 60 else block.little(size - 60) + 1)
            case 1:
                distance = tag >> 5 << 8 | block.little(1)
                _copy(result, distance, 4 + (tag >> 2 & 7), block.corrupt)
            case type:
                _copy(result, block.little(2 if type == 2 else 4), size, block.corrupt)
        if len(result) > announced:
            raise content.corrupt(_BLOCK_IS_WRONG)
    if len(result) != announced:
        raise content.corrupt(_BLOCK_IS_WRONG)
    content.add(bytes(result))


def _varint32(block: _Input) -> int:
    number = 0
    for shift in range(0, 35, 7):
        byte = block.little(1)
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 32:
                break
            return number
    raise block.corrupt(_BLOCK_IS_WRONG)


def _copy(result: bytearray, distance: int, size: int, corrupt: Callable[[str], Undecodable], before: int = 0) -> None:
    """Repeat what stands some bytes back; where that is less than what is asked for it repeats itself."""
    if not 0 < distance <= len(result) - before:
        raise corrupt(_BLOCK_IS_WRONG)
    pattern = bytes(result[-distance:][:size])
    result += (pattern * (size // len(pattern) + 1))[:size]


# --- lz4 -------------------------------------------------------------------------------------------------------------


def _lz4(frame: _Input, content: _Content, *, legacy: bool) -> None:
    flags, max_block_len, content_len = _lz4_header(frame, legacy=legacy)
    while True:
        word = frame.little(4)
        if word == 0:
            break
        size = word & ~_STORED
        if size > max_block_len:
            raise content.corrupt("a block is longer than the header allows")
        block = frame.take(size)
        if flags & _BLOCK_CHECKSUMS and frame.little(4) != xxh32(block):
            raise content.corrupt("the checksum of a block does not hold")
        if word & _STORED:
            content.add(block)
        else:
            _lz4_block(block, content, max_block_len, linked=not flags & _INDEPENDENT)
    if flags & _CONTENT_CHECKSUM and frame.little(4) != xxh32(bytes(content.produced)):
        raise content.corrupt("the checksum of the content does not hold")
    if content_len is not None and content_len != len(content.produced):
        raise content.corrupt("the content has another length than the header says")
    if frame.left:
        raise content.corrupt(_LEFT_OVER)


def _lz4_header(frame: _Input, *, legacy: bool) -> tuple[int, int, int | None]:
    """Return the flags, the most bytes of a block's content, and the length of the whole content if it is told."""
    if frame.take(len(_LZ4_MAGIC)) != _LZ4_MAGIC:
        raise frame.corrupt("it does not begin with the magic of a frame")
    flags, size = frame.take(2)
    if flags >> 6 != 1:
        raise frame.corrupt(f"version {flags >> 6} of the frame is unknown")
    if flags & _RESERVED or size & 0x8F:
        raise frame.corrupt("reserved bits of the frame are set")
    if flags & _DICTIONARY:
        raise frame.corrupt("the frame needs a dictionary")
    if size >> 4 < 4:
        raise frame.corrupt(f"block size code {size >> 4} is unknown")
    content_len = frame.little(8) if flags & _CONTENT_LEN else None
    header = frame.data[: frame.at]
    checks = {xxh32(header[len(_LZ4_MAGIC) :]) >> 8 & 0xFF} | ({xxh32(header) >> 8 & 0xFF} if legacy else set())
    if frame.little(1) not in checks:
        raise frame.corrupt("the checksum of the header does not hold")
    return flags, 1 << 8 + 2 * (size >> 4), content_len


def _lz4_block(data: bytes, content: _Content, max_len: int, *, linked: bool) -> None:
    block = _Input(data, content.corrupt, too_early=_BLOCK_IS_WRONG)
    most = min(max_len, len(data) * _LZ4_MAX_RATIO)
    # A linked block may refer to the content before it.
    before = len(content.produced)
    reach = 0 if linked else before

    def check_len() -> None:
        if len(content.produced) - before > most or len(content.produced) > content.limit:
            raise content.too_large() if content.limit - before < most else content.corrupt(_BLOCK_IS_WRONG)

    while True:
        token = block.little(1)
        content.produced += block.take(_lz4_len(block, token >> 4))
        check_len()
        if not block.left:
            return
        distance = block.little(2)
        size = 4 + _lz4_len(block, token & 15)
        # The length of a copy is a claim: it is looked at before the copy is made.
        if size > most:
            raise content.too_large() if content.limit - before < most else content.corrupt(_BLOCK_IS_WRONG)
        _copy(content.produced, distance, size, block.corrupt, before=reach)
        check_len()


def _lz4_len(block: _Input, nibble: int) -> int:
    length = nibble
    more = 255 if nibble == 15 else 0
    while more == 255:
        more = block.little(1)
        length += more
    return length


# --- zstd ------------------------------------------------------------------------------------------------------------


def _zstd(data: bytes, content: _Content) -> None:
    with install_hint("zstd in plain Python", "zstandard"):
        import zstandard
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_LEN)
    while True:
        frame = decoder.decompressobj()
        at = 0
        while not frame.eof:
            if at >= len(data):
                raise content.corrupt(_TOO_EARLY)
            try:
                content.add(frame.decompress(data[at : at + _ZSTD_PIECE_LEN]))
            except zstandard.ZstdError:
                raise content.corrupt("a header, block or checksum is wrong") from None
            at += _ZSTD_PIECE_LEN
        data = frame.unused_data + data[at:]
        if not data:
            return
