"""Damage stored messages at known places, so that the errors that letterhead reports can be checked."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import letterhead as lh

FORMAT = "streams-timestamped"


class Damage(NamedTuple):
    """What was done to a message, and the error that has to be reported for it."""

    row: int
    kind: str
    code: str
    byte: int
    header: int | None = None
    column: str | None = None


KINDS = (
    "cut off", "negative key length", "negative count", "count too small", "key not UTF-8", "number too short",
    "text not UTF-8",
)  # fmt: skip


def damage_messages(messages: Sequence[bytes], share: float) -> tuple[list[bytes], list[Damage]]:
    """Damage a share of the messages, the same ones in every run, each kind of damage in turn."""
    rows = sorted(random.Random(82).sample(range(len(messages)), round(share * len(messages))))
    damaged, done = list(messages), []
    for number, row in enumerate(rows):
        damaged[row], damage = _damaged(row, messages[row], KINDS[number % len(KINDS)])
        done.append(damage)
    return damaged, done


def _damaged(row: int, data: bytes, kind: str) -> tuple[bytes, Damage]:
    labels = {(label.field, label.header): label for label in lh.inspect(data, FORMAT)["labels"]}
    headers = lh.decode(data, FORMAT).headers
    # Columns get the last value of a key.
    last = {key: place for place, (key, value) in enumerate(headers) if value}
    if kind == "number too short" and "retry" in last:
        message, header = lh.decode(data, FORMAT), last["retry"]
        pairs = [(key, value[:-1] if place == header else value) for place, (key, value) in enumerate(headers)]
        short = lh.encode(lh.Message(headers=pairs, timestamp=message.timestamp, payload=message.payload), FORMAT)
        value = next(
            label for label in lh.inspect(short, FORMAT)["labels"] if (label.field, label.header) == ("value", header)
        )
        return short, Damage(row, kind, "wrong_size", value.start, header, "retry")
    if kind == "text not UTF-8" and "tenant" in last:
        at = labels["value", last["tenant"]].start
        return _with(data, at, 0xFF), Damage(row, kind, "value_not_utf8", at, last["tenant"], "tenant")
    if headers and kind in ("negative count", "count too small"):
        # Counts here are below 64, so they are one byte: twice the number.
        at = labels["header count", None].start
        if kind == "negative count":
            return _with(data, at, 1), Damage(row, kind, "negative_count", at)
        behind = labels["key length", len(headers) - 1].start
        return _with(data, at, data[at] - 2), Damage(row, kind, "trailing_bytes", behind)
    header = row % max(len(headers), 1)
    if headers and kind == "negative key length":
        at = labels["key length", header].start
        return _with(data, at, 1), Damage(row, kind, "negative_length", at, header)
    if headers and kind == "key not UTF-8":
        at = labels["key", header].start
        return _with(data, at, 0xFF), Damage(row, kind, "key_not_utf8", at, header)
    size = labels["headers size", None]
    return data[: size.end + 5], Damage(row, "cut off", "truncated", size.end)


def _with(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]
