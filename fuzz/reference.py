"""Fuzz the core against the reference implementation: the same values, and the same errors at the same bytes.

atheris (``pip install atheris``) measures which lines of ``tests/reference`` an input covers. ``tools/fuzz reference`` calls
it; the options are those of libFuzzer. LETTERHEAD_FUZZ_FORMAT names the format to fuzz; without it, the first byte of an
input chooses.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from typing import Any

import atheris

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS.parent))

with atheris.instrument_imports(include=["reference"]):
    from tests.reference import ops
    from tests.reference.formats import FORMATS

import letterhead as lh
from tests.helpers.implementations import detail_of, place, plain
from letterhead.errors import HeaderError
from tests.reference.crc32c import crc32c

NAMES = sorted(FORMATS)
TARGETS = [name for name in NAMES if FORMATS[name].batch is None and not FORMATS[name].traits.instead]
CHOSEN = os.environ.get("LETTERHEAD_FUZZ_FORMAT")

if CHOSEN is not None and CHOSEN not in FORMATS:
    sys.exit(f"LETTERHEAD_FUZZ_FORMAT={CHOSEN}: there are {', '.join(NAMES)}")


def check(data: bytes) -> None:
    """Compare both implementations on one input: format unless it is chosen, shape, target, serialized message."""
    format = CHOSEN
    if format is None:
        format, data = NAMES[data[0] % len(NAMES)] if data else NAMES[0], data[1:]
    if len(data) < 2:
        return
    shape, target, serialized = data[0], TARGETS[data[1] % len(TARGETS)], data[2:]
    options = {"lenient": bool(shape & 1), "strict_types": bool(shape & 2)}
    if shape & 4:
        serialized = sealed(serialized)
    native = [detail_of(error) for error in lh.validate(serialized, format, **options)]
    assert [place(detail) for detail in native] == [
        place(detail) for detail in ops.validate(serialized, format, **options)
    ]
    if FORMATS[format].batch is not None:
        ours = outcome(lambda: [plain(message) for message in lh.messages(serialized, format, **options)])
        assert ours == outcome(lambda: list(ops.messages(serialized, format, **options)))
        return
    ours = outcome(lambda: plain(lh.decode(serialized, format, **options)))
    assert ours == outcome(lambda: ops.decode(serialized, format, **options))
    types = types_between(format, target, shape >> 3 & 3)
    losses = {"target": target, "on_loss": ["raise", "drop"][shape >> 5 & 1], "types": types}
    ours = outcome(lambda: lh.convert(serialized, format, **losses, **options))
    assert ours == outcome(lambda: ops.convert(serialized, format, **losses, **options))


def outcome(call: Any) -> Any:
    """Return the result of a call, or its error and the position."""
    try:
        return call()
    except HeaderError as error:
        return type(error).__name__, place(detail_of(error))


def types_between(source: str, target: str, choice: int) -> str | None:
    """Return the options that add or remove types, for conversions that need them."""
    has = [FORMATS[name].traits.types is not None for name in (source, target)]
    return {(True, False): [None, "be", "le", "text"][choice], (False, True): [None, "binary"][choice & 1]}.get(
        (has[0], has[1])
    )


def sealed(serialized: bytes) -> bytes:
    """Write valid checksums into batches and messages of Kafka, as far as they can be found."""
    sealed_data, at = bytearray(serialized), 0
    while len(sealed_data) - at >= 17:
        end = at + 12 + int.from_bytes(sealed_data[at + 8 : at + 12])
        if end > len(sealed_data):
            break
        if sealed_data[at + 16] == 2 and CHOSEN == "record-batch" and end - at >= 21:
            sealed_data[at + 17 : at + 21] = crc32c(bytes(sealed_data[at + 21 : end])).to_bytes(4)
        elif end - at >= 16:
            sealed_data[at + 12 : at + 16] = zlib.crc32(sealed_data[at + 16 : end]).to_bytes(4)
        at = end
    return bytes(sealed_data)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
