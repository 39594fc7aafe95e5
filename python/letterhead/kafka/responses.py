"""Validate responses of brokers against their requests, and extract the records of a fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from kafka import errors as kafka_errors

from letterhead.kafka.record_sets import AbortedTransaction
from letterhead.offsets.partition_log import TopicPartition

__all__ = [
    "ISOLATION", "Fetched", "FindMismatch", "Isolation", "check_code", "unwrap_response", "find_fetch_mismatch",
    "find_metadata_mismatch", "find_offsets_mismatch", "find_produce_mismatch", "find_producer_mismatch",
]  # fmt: skip

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}

FindMismatch: TypeAlias = Callable[[Any], str | None]
"""Function that describes how a response differs from its request; None if it matches."""


class Fetched(NamedTuple):
    """The response to a fetch."""

    records: Any  # record set, whose last batch may be truncated
    end: int  # the offset after the last readable record; -1 if the requested offset is out of range
    aborted: list[AbortedTransaction]  # aborted transactions, listed for read_committed only
    # If the logs diverge: newest epoch of the leader's log that is not above the epoch of the fetched records, and its
    # end offset.
    diverging: tuple[int, int] | None = None
    replica: int = -1  # preferred replica, which the leader names for a client with a rack


def check_code(code: int, where: object) -> None:
    """Raise the error of kafka-python for an error code other than 0."""
    if code:
        raise kafka_errors.for_code(code)(str(where))


def unwrap_response(response: Any, partition: TopicPartition, isolation: Isolation) -> Fetched:
    """Return the only partition of a response; raise the error of kafka-python for an error code."""
    check_code(response.error_code, partition)
    [topic] = response.responses
    [fetched] = topic.partitions
    end = fetched.last_stable_offset if ISOLATION[isolation] else fetched.high_watermark
    if fetched.error_code == kafka_errors.OffsetOutOfRangeError.errno:
        return Fetched(b"", -1, [])
    check_code(fetched.error_code, partition)
    diverging = fetched.diverging_epoch
    if diverging is not None and diverging.end_offset >= 0:
        return Fetched(b"", end, [], (diverging.epoch, diverging.end_offset))
    if fetched.preferred_read_replica >= 0 and not fetched.records:
        return Fetched(b"", end, [], replica=fetched.preferred_read_replica)
    if response.throttle_time_ms and not fetched.records:  # a quota delays the records
        raise kafka_errors.NodeNotReadyError(f"throttled for {response.throttle_time_ms} ms")
    aborted = [
        AbortedTransaction(transaction.producer_id, transaction.first_offset)
        for transaction in fetched.aborted_transactions or ()
    ]
    return Fetched(fetched.records or b"", end, aborted)


def find_metadata_mismatch(topics: list[str] | None, response: Any) -> str | None:
    """Describe how metadata differs from the request; None if it matches."""
    names = [topic.name for topic in response.topics or ()]
    if not all(isinstance(name, str) for name in names) or len({*names}) != len(names):
        return "sent metadata of topics without a name, or of one topic twice"
    if topics is not None and {*names} != {*topics}:
        return "sent metadata of other topics than the requested ones"
    for topic in response.topics or ():
        numbers = [partition.partition_index for partition in topic.partitions or ()]
        if len({*numbers}) != len(numbers) or min(numbers, default=0) < 0:
            return f"sent metadata with invalid partitions of topic {topic.name}"
    if not all(broker.host and 0 < broker.port < 1 << 16 for broker in response.brokers or ()):
        return "sent metadata with a broker that has no valid address"
    return None


def find_offsets_mismatch(partitions: list[TopicPartition], response: Any) -> str | None:
    """Describe how the listed offsets differ from the request; None if they match."""
    pairs = [(topic, partition) for topic in response.topics or () for partition in topic.partitions or ()]
    if sorted((topic.name or "", partition.partition_index) for topic, partition in pairs) != sorted(partitions):
        return f"sent offsets of other partitions than the requested ones ({', '.join(map(str, partitions[:3]))})"
    if any(partition.offset < -1 for _, partition in pairs):
        return "sent a negative offset"
    return None


def find_fetch_mismatch(partition: TopicPartition, last_epoch: int, response: Any) -> str | None:
    """Describe how fetched records differ from the request; None if they match."""
    if response.error_code:
        return None
    pairs = [(topic.topic, fetched) for topic in response.responses or () for fetched in topic.partitions or ()]
    if [(topic, fetched.partition_index) for topic, fetched in pairs] != [partition]:
        return f"sent records of other partitions than {partition}"
    [(_, fetched)] = pairs
    if last_epoch < 0 and fetched.diverging_epoch is not None and fetched.diverging_epoch.end_offset >= 0:
        return f"reports that records of {partition} were removed, of which none was read"
    return None


def find_produce_mismatch(topic: str, partitions: list[int], response: Any) -> str | None:
    """Describe how acknowledgements differ from the request; None if they match."""
    pairs = [
        (named.name, answer.index) for named in response.responses or () for answer in named.partition_responses or ()
    ]
    if len(response.responses or ()) != 1 or sorted(pairs) != sorted((topic, partition) for partition in partitions):
        return f"acknowledged records of other partitions than the sent ones of {topic}"
    if any(answer.base_offset < -1 for answer in response.responses[0].partition_responses):
        return "acknowledged records at a negative offset"
    return None


def find_producer_mismatch(response: Any) -> str | None:
    """Describe why a producer id is invalid; None if it is valid."""
    if not response.error_code and (response.producer_id < 0 or response.producer_epoch < 0):
        return "sent a negative producer id"
    return None
