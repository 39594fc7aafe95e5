"""``iggy-polled-2023``: messages as servers of Apache Iggy 0.0.30 to 0.6 give them to who polls.

::

    era A    ┌────────────┬───────────────┬─────────┬─────────────────┬─────────────────┬─────────────────┬─────────┐
             │ u64 offset │ u64 timestamp │ u128 id │ u32 headers_len │ iggy-2023 block │ u32 payload_len │ payload │
             └────────────┴───────────────┴─────────┴─────────────────┴─────────────────┴─────────────────┴─────────┘
    era B    ┌────────────┬──────────┬───────────────┬─────────┬──────────────┬─────────────────┬─ ─
             │ u64 offset │ u8 state │ u64 timestamp │ u128 id │ u32 checksum │ u32 headers_len │ and on as above
             └────────────┴──────────┴───────────────┴─────────┴──────────────┴─────────────────┴─ ─

Little-endian, times in microseconds, repeated to the end. Era A is the layout of the document of 2023 and of 0.0.30;
later releases add a state and the CRC-32 of the payload.

Nothing says in which era a message was made. It is era B where messages of era B, each with a state that is one of the four
codes, fill the message to its end; where neither era does, it is era B if the first message is one. The checksum decides
nothing: one that does not hold is an error.

Differences from the reference implementation (``iggy`` 0.6.210): those of the block. What stands before the messages in a
reply (partition, current offset, count) is no part of this layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.reference.cursor import Broken, Cursor
from tests.reference.messages.iggy_message_2023 import take_block, take_payload
from tests.reference.parts import check_crc, take_id, take_int64
from tests.reference.protocols import Fields, Opened

STATES = {1: "available", 10: "unavailable", 20: "poisoned", 30: "marked_for_deletion"}


def messages(cursor: Cursor) -> Iterator[Opened]:
    """Return every message up to the cursor's end; one that hides where the next begins is the last."""
    later = is_later(cursor)
    while cursor.left:
        cursor.details = []
        try:
            opened, whole = _take(cursor, later=later)
        except Broken as end:
            yield Opened({}, None, [*cursor.details, end.detail], broken=True)
            return
        yield opened
        if not whole:
            return


def is_later(cursor: Cursor) -> bool:
    """Return whether the messages are those of era B."""
    count, to_the_end, checksums_hold = _fill(cursor, later=True)
    if _fill(cursor, later=False)[1]:
        return to_the_end and checksums_hold
    return to_the_end or count > 0


def _fill(cursor: Cursor, *, later: bool) -> tuple[int, bool, bool]:
    """Return how many messages of an era there are, whether they fill the bytes to the end, and if their checksums hold."""
    trial = Cursor(cursor.data, cursor.at, cursor.end)
    count, hold = 0, True
    try:
        while trial.left:
            opened, whole = _take(trial, later=later)
            if not whole or (later and opened.fields["state"] is None):
                return count, False, hold
            hold = hold and not any(detail.code == "bad_crc" for detail in trial.details)
            count += 1
    except Broken:
        return count, False, hold
    return count, True, hold


def _take(cursor: Cursor, *, later: bool) -> tuple[Opened, bool]:
    """Read the message at the cursor, and say whether it was read to its end."""
    fields: Fields = {"offset": take_int64(cursor, "offset"), "state": None, "checksum": None, "payload": None}
    if later:
        state_at = cursor.at
        state = cursor.little("state", 1)
        if state not in STATES:
            cursor.soft("bad_attributes", f"state {state} is unknown", state_at)
        fields["state"] = STATES.get(state)
    fields["timestamp"] = take_int64(cursor, "timestamp")
    fields["id"] = take_id(cursor)
    checksum_at = cursor.at
    if later:
        fields["checksum"] = cursor.little("checksum", 4)
    block = take_block(cursor)
    with cursor.softly():
        fields["payload"] = take_payload(cursor)
        if later:
            check_crc(cursor, fields["checksum"], fields["payload"], checksum_at)
    return Opened(fields, block, cursor.details), fields["payload"] is not None
