"""Responses of brokers: whether they answer the request, and the records of a fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from kafka import errors as kafka_errors

from letterhead.kafka.record_sets import AbortedTransaction
from letterhead.offsets.partition_log import TopicPartition

__all__ = [
    "ISOLATION", "Fetched", "Isolation", "Wrong", "check_code", "fetched_response", "wrong_fetch", "wrong_metadata",
    "wrong_offsets",
]  # fmt: skip

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}

Wrong: TypeAlias = Callable[[Any], str | None]
"""A function that returns what is wrong with a response, None if it answers the request."""


class Fetched(NamedTuple):
    """The response to a fetch."""

    records: Any  # a record set, of which the last batch may be truncated
    end: int  # the offset after the last readable record; -1 if the requested offset is out of range
    aborted: list[AbortedTransaction]  # with read_committed
    # The leader's log has other records than those fetched before: its last epoch that is not above theirs, and where
    # that epoch ends.
    diverging: tuple[int, int] | None = None
    replica: int = -1  # the broker to ask instead, which the leader names for a client with a rack


def check_code(code: int, where: object) -> None:
    """Raise the error of kafka-python for an error code other than 0."""
    if code:
        raise kafka_errors.for_code(code)(str(where))


def fetched_response(answer: Any, place: TopicPartition, isolation: Isolation) -> Fetched:
    """Return the response of one partition; raise the error of kafka-python for its error code."""
    check_code(answer.error_code, place)
    [topic] = answer.responses
    [response] = topic.partitions
    end = response.last_stable_offset if ISOLATION[isolation] else response.high_watermark
    if response.error_code == kafka_errors.OffsetOutOfRangeError.errno:
        return Fetched(b"", -1, [])
    check_code(response.error_code, place)
    diverging = response.diverging_epoch
    if diverging is not None and diverging.end_offset >= 0:
        return Fetched(b"", end, [], (diverging.epoch, diverging.end_offset))
    if response.preferred_read_replica >= 0 and not response.records:
        return Fetched(b"", end, [], replica=response.preferred_read_replica)
    if answer.throttle_time_ms and not response.records:  # a quota withholds the records
        raise kafka_errors.NodeNotReadyError(f"throttled for {answer.throttle_time_ms} ms")
    aborted = [
        AbortedTransaction(transaction.producer_id, transaction.first_offset)
        for transaction in response.aborted_transactions or ()
    ]
    return Fetched(response.records or b"", end, aborted)


def wrong_metadata(topics: list[str] | None, answer: Any) -> str | None:
    """Return an error message if metadata do not answer the request, otherwise None."""
    names = [topic.name for topic in answer.topics or ()]
    if not all(isinstance(name, str) for name in names) or len({*names}) != len(names):
        return "sent metadata of topics without a name, or of one topic twice"
    if topics is not None and {*names} != {*topics}:
        return "sent metadata of other topics than the requested ones"
    for topic in answer.topics or ():
        numbers = [partition.partition_index for partition in topic.partitions or ()]
        if len({*numbers}) != len(numbers) or min(numbers, default=0) < 0:
            return f"sent metadata with invalid partitions of topic {topic.name}"
    if not all(broker.host and 0 < broker.port < 1 << 16 for broker in answer.brokers or ()):
        return "sent metadata with a broker that has no valid address"
    return None


def wrong_offsets(places: list[TopicPartition], answer: Any) -> str | None:
    """Return an error message if listed offsets do not answer the request, otherwise None."""
    pairs = [(topic, partition) for topic in answer.topics or () for partition in topic.partitions or ()]
    if sorted((topic.name or "", partition.partition_index) for topic, partition in pairs) != sorted(places):
        return f"sent offsets of other partitions than the requested ones ({', '.join(map(str, places[:3]))})"
    if any(partition.offset < -1 for _, partition in pairs):
        return "sent a negative offset"
    return None


def wrong_fetch(place: TopicPartition, last_epoch: int, answer: Any) -> str | None:
    """Return an error message if fetched records do not answer the request, otherwise None."""
    if answer.error_code:
        return None
    pairs = [(topic.topic, partition) for topic in answer.responses or () for partition in topic.partitions or ()]
    if [(topic, partition.partition_index) for topic, partition in pairs] != [place]:
        return f"sent records of other partitions than {place}"
    [(_, partition)] = pairs
    if last_epoch < 0 and partition.diverging_epoch is not None and partition.diverging_epoch.end_offset >= 0:
        return f"reports that records of {place} were removed, of which none was read"
    return None
