"""`--format auto`: detect the format of bytes.

A format fits if it parses all of the bytes. Fitting formats are ranked by the strength of that evidence, and only the
best remain:

* CHECKSUM: a checksum matches. Kafka's record batches, messages of the KIP-82 drafts, Iggy's batches, and what Iggy
  returned to a poll from 0.0.40 on have one.
* STRUCTURE: the bytes contain headers, or lengths that add up to their size.
* ANYTHING: the format reads nearly all bytes. `00` and any bytes after it are `streams` without headers.

If several remain, none is chosen. `streams` and `streams-timestamped` always remain together: a timestamp can be payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import letterhead as lh
from letterhead._formats import format_table
from letterhead.cli.exits import BAD_DATA, Failure
from letterhead.cli.formats import is_batch, row_of
from letterhead.cli.render import warn
from letterhead.kafka.batch_attributes import CODEC_BITS

AUTO = "auto"

CHECKSUM, STRUCTURE, ANYTHING = 2, 1, 0
# Formats for which messages without headers begin with a few common bytes, followed by payload.
_WEAK = ("kafka", "streams", "streams-timestamped", "kip82-wrapper")
# Minimum size of a batch of Iggy 0.11; an empty reply has only 16 bytes, which are no evidence.
_IGGY_BATCH_LEN = 256


def sniff(values: Iterable[bytes]) -> list[str]:
    """Return the formats that fit most of the values."""
    count = 0
    scores_by_format: dict[str, list[int]] = {name: [] for name in format_table()}
    for value in values:
        count += 1
        for name, scores in scores_by_format.items():
            score = _score(value, name)
            scores += [] if score is None else [score]
    # A few damaged values do not prevent detection.
    totals = {name: sum(scores) for name, scores in scores_by_format.items() if scores and 2 * len(scores) > count}
    best = max(totals.values(), default=0)
    best_formats = [name for name, total in totals.items() if total == best]
    # A set of one message equals that message.
    return [
        name
        for name in best_formats
        if name.replace("-messages", "-message") not in best_formats or "-messages" not in name
    ]


def format_of(name: str, values: Iterable[bytes]) -> str:
    """Return the named format; detect it if the name is `auto`, and print it to stderr."""
    if name != AUTO:
        row_of(name)
        return name
    matching = sniff(values)
    if not matching:
        raise Failure("no format fits these bytes: name one to see what is wrong with them", BAD_DATA)
    if len(matching) > 1:
        raise Failure(f"these bytes fit {', '.join(matching[:-1])} and {matching[-1]}: name one of them")
    warn(f"these bytes are {matching[0]}")
    return matching[0]


def _score(value: bytes, format: str) -> int | None:
    """Return the strength of the evidence that a value has a format; None if it does not."""
    if format == "iggy-auto":
        # `iggy-auto` only chooses between two other formats.
        return None
    try:
        if is_batch(format):
            return _score_batch(value, format, list(lh.messages(value, format)))
        return _score_message(value, format, lh.decode(value, format))
    except lh.HeaderError:
        return None


def _score_batch(value: bytes, format: str, messages: list[lh.Message]) -> int | None:
    if format == "iggy-batch":
        return CHECKSUM if len(value) >= _IGGY_BATCH_LEN else None
    if not messages:
        return ANYTHING
    with_checksum = format.startswith(("kip82-", "record-")) or getattr(messages[0], "state", None) is not None
    return CHECKSUM if with_checksum else STRUCTURE


def _score_message(value: bytes, format: str, message: Any) -> int:
    if not value:
        return ANYTHING
    if format.startswith("kip82-message"):
        # Read as one message, a compressed set keeps its messages undecoded in the value, which is weaker evidence.
        return STRUCTURE if message.attributes & CODEC_BITS else CHECKSUM
    headers = message if isinstance(message, lh.Headers) else message.headers
    return ANYTHING if format in _WEAK and not headers else STRUCTURE
