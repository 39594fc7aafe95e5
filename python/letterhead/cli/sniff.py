"""`--format auto`: which formats bytes are in, as far as the bytes can tell.

A format fits if it reads the bytes whole, from the first to the last. What that says differs, and only the formats that
say most are left:

* most: a checksum holds. That is so in the record batches of Kafka, in the messages of the KIP-82 drafts, in Iggy's
  batches and in what it polled from 0.0.40 on.
* less: there are headers, or lengths that end where the bytes end.
* least: the format would read nearly anything. A `00` and then whatever there may be is `streams` without headers.

If several are left, none is picked. `streams` and `streams-timestamped` always are: a timestamp is a payload, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import letterhead as lh
from letterhead.cli.exits import FAULTS, Failure
from letterhead.cli.formats import table_of_formats

AUTO = "auto"

CHECKSUM, STRUCTURE, ANYTHING = 2, 1, 0
CODEC = 0x07
# Without headers these are a few bytes that are often there, and then payload.
_WEAK = ("kafka", "streams", "streams-timestamped", "kip82-wrapper")
# A batch of Iggy 0.11 is not shorter; without one, 16 bytes of anything could be an empty reply.
_IGGY_BATCH_LEN = 256


def sniff(cells: Iterable[bytes]) -> list[str]:
    """Name the formats that cells are in, all or most of them in the same one."""
    count = 0
    found: dict[str, list[int]] = {name: [] for name in table_of_formats()}
    for cell in cells:
        count += 1
        for name, scores in found.items():
            score = _score(cell, name)
            scores += [] if score is None else [score]
    # A damaged cell or two do not hide what the others are.
    totals = {name: sum(scores) for name, scores in found.items() if scores and 2 * len(scores) > count}
    most = max(totals.values(), default=0)
    left = [name for name, total in totals.items() if total == most]
    # A set of one message is that message.
    return [name for name in left if name.replace("-messages", "-message") not in left or "-messages" not in name]


def format_of(given: str, cells: Iterable[bytes]) -> str:
    """Give the format that was named, or with `auto` the one that fits; say on stderr which that is."""
    if given != AUTO:
        return given
    found = sniff(cells)
    if not found:
        raise Failure("no format fits these bytes as they are: name one to see what is wrong with them", FAULTS)
    if len(found) > 1:
        raise Failure(f"these bytes fit {', '.join(found[:-1])} and {found[-1]}: name one of them")
    print(f"letterhead: these bytes are {found[0]}", file=sys.stderr)
    return found[0]


def _score(cell: bytes, format: str) -> int | None:
    """Say how much it says that a format fits a cell; None if it does not fit."""
    if format == "iggy-auto":
        # It is one of the two that it tells apart.
        return None
    try:
        if table_of_formats()[format]["is_"] == "batch":
            return _score_batch(cell, format, list(lh.messages(cell, format)))
        return _score_message(cell, format, lh.decode(cell, format))
    except lh.HeaderError:
        return None


def _score_batch(cell: bytes, format: str, messages: list[lh.Message]) -> int | None:
    if format == "iggy-batch":
        return CHECKSUM if len(cell) >= _IGGY_BATCH_LEN else None
    if not messages:
        return ANYTHING
    with_checksum = format.startswith(("kip82-", "record-")) or getattr(messages[0], "state", None) is not None
    return CHECKSUM if with_checksum else STRUCTURE


def _score_message(cell: bytes, format: str, message: Any) -> int:
    if not cell:
        return ANYTHING
    if format.startswith("kip82-message"):
        # As one message a compressed set is a value that nobody has opened.
        return STRUCTURE if message.attributes & CODEC else CHECKSUM
    headers = message if isinstance(message, lh.Headers) else message.headers
    return ANYTHING if format in _WEAK and not headers else STRUCTURE
