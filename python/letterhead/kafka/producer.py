"""Append record batches to a topic, each exactly once: :class:`KafkaProducer`.

A producer has an id and an epoch, and numbers the records of each partition, like the idempotent producer of Java.
After a possibly temporary error a batch is sent again with the same bytes, and a broker recognizes a duplicate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from letterhead import _native
from letterhead.errors import TopicNotFoundError
from letterhead.kafka.client import KafkaClient
from letterhead.kafka.settings import Settings
from letterhead.offsets.partition_log import TopicPartition

# Imported after client, because its ImportError names the required version.
from kafka import errors as kafka_errors  # isort: skip
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest  # isort: skip
from letterhead.kafka.broker_errors import is_final  # isort: skip
from letterhead.kafka.responses import check_code, find_produce_mismatch, find_producer_mismatch  # isort: skip

__all__ = ["KafkaProducer", "OutgoingBatch", "Rejection"]

_UNKNOWN_TOPIC_SECONDS = 5.0
"""Time for which a topic may be unknown: after its creation on demand, it takes seconds to reach all brokers."""

_WAIT_SECONDS = 0.1

_REQUEST_MS = 30_000
"""Time limit for the replicas of a partition to acknowledge a batch."""

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError.errno, kafka_errors.RecordListTooLargeError.errno)
_OF_RECORDS = (*_TOO_LARGE, kafka_errors.InvalidTimestampError.errno, kafka_errors.InvalidRecordError.errno)
"""Errors of single records; the other records of the batch can still be appended."""

_REASONS = {
    **dict.fromkeys(_TOO_LARGE, "the broker takes no record of this size: raise max.message.bytes of the topic"),
    kafka_errors.TopicAuthorizationFailedError.errno: "not authorized: the user needs an ACL to write to the topic",
}

_MAX_SEQUENCE = (1 << 31) - 1

_DUPLICATE = kafka_errors.DuplicateSequenceNumberError.errno
_LOST_STATE = (kafka_errors.OutOfOrderSequenceNumberError.errno, kafka_errors.UnknownProducerIdError.errno)
_CORRUPT = kafka_errors.CorruptRecordError.errno  # the batch was corrupted in transit
_APPENDED = (kafka_errors.RequestTimedOutError.errno, kafka_errors.NotEnoughReplicasAfterAppendError.errno)
"""Errors after which the leader may have the batch, but not all replicas do."""


class Rejection(NamedTuple):
    """Reason why a broker rejects a batch."""

    reason: str
    of_records: bool  # whether single records are invalid, and the other records can be appended
    too_large: bool
    records: dict[int, str]  # reasons by index of the record in the batch, for the records that the broker names


class OutgoingBatch:
    """Record batch that is sent until a broker acknowledges or rejects it.

    Parameters
    ----------
    partition : int
        Partition to append to.
    data : bytes
        Record batch without a producer id.
    rows : int
        Number of records.
    """

    def __init__(self, partition: int, data: bytes, rows: int) -> None:
        self.partition = partition
        self.data = data
        self.rows = rows
        self.offset: int | None = (
            None  # offset of the first record; -1 if the broker recognized a duplicate without its offset
        )
        self.rejection: Rejection | None = None
        self.may_be_written = False  # whether an attempt ended without an answer
        self._sent: bytes | None = None
        self._lost_states = 0

    @property
    def is_answered(self) -> bool:
        """Whether a broker has acknowledged or rejected the batch."""
        return self.offset is not None or self.rejection is not None

    @property
    def is_unsealed(self) -> bool:
        """Whether the batch has no producer id, or lost it because a new producer sends the batch."""
        return self._sent is None

    def sealed(self, sequence: _Sequence) -> bytes:
        """Return the bytes to send, which are the same in every attempt."""
        if self._sent is None:
            self._sent = _native.with_producer(self.data, sequence.producer_id, sequence.epoch, sequence.following)
        return self._sent

    def note(self, answer: Any, where: TopicPartition) -> Exception | None:
        """Note an answer; return the error if the batch should be sent again."""
        code = answer.error_code
        if not code or code == _DUPLICATE:
            self.offset = -1 if code else max(answer.base_offset, -1)
            return None
        error_class = kafka_errors.for_code(code)
        error: Exception = error_class(str(where))
        if code in _LOST_STATE and not self.may_be_written and not self._lost_states:
            # The batch is not in the log, so it can be the first batch of a new producer.
            self._lost_states += 1
            self._sent = None
            return _repeated(error)
        if code == _CORRUPT or getattr(error, "retriable", False):
            self.may_be_written |= code in _APPENDED
            return _repeated(error) if code == _CORRUPT else error
        reason = _REASONS.get(code) or answer.error_message or error_class.description
        if code in _LOST_STATE and self.may_be_written:
            reason = f"{reason} Whether the record is written is not known, because the broker lost what it knew of the producer"
        records = {
            rejected.batch_index: rejected.batch_index_error_message or reason
            for rejected in answer.record_errors or ()
            if 0 <= rejected.batch_index < self.rows
        }
        is_large = code in _TOO_LARGE
        self.rejection = Rejection(reason, code in _OF_RECORDS, is_large, {} if is_large else records)
        return None


def _repeated(error: Exception) -> Exception:
    """Return an error that causes a retry."""
    temporary: Exception = kafka_errors.NodeNotReadyError(str(error))
    return temporary


@dataclass
class _Sequence:
    """Producer of a partition, and the sequence number of its next record."""

    producer_id: int
    epoch: int
    following: int


class KafkaProducer(KafkaClient):
    """Appends record batches to the partitions of a topic. At most one batch of each partition is unanswered."""

    _creates_topics = True

    def __init__(self, settings: Settings, topic: str) -> None:
        super().__init__(settings)
        self._topic = topic
        self._acks = settings.producer.acks
        self._is_idempotent = settings.producer.is_idempotent
        self._sequences: dict[int, _Sequence] = {}
        self._producer: tuple[int, int] = (-1, -1)

    def open(self) -> int:
        """Obtain a producer id, and return the number of partitions of the topic.

        Raises
        ------
        TopicNotFoundError
            If the topic does not exist, and the brokers do not create it within seconds.
        """
        if self._is_idempotent:
            self.call(self._init_producer)
        deadline = time.monotonic() + min(self.timeout, _UNKNOWN_TOPIC_SECONDS)
        while True:
            try:
                return len(self.partitions([self._topic]))
            except TopicNotFoundError:
                if time.monotonic() + _WAIT_SECONDS >= deadline:
                    raise
            time.sleep(_WAIT_SECONDS)

    def begin_append(self, batches: Sequence[OutgoingBatch]) -> Any:
        """Start to send batches of different partitions in the background; return a handle for :meth:`wait`.

        Afterwards each batch has an answer, or :meth:`wait` raises the reason why not.
        """
        return self.begin(partial(self._append, batches))

    async def _append(self, batches: Iterable[OutgoingBatch], deadline: float) -> None:
        by_leader: dict[int, list[OutgoingBatch]] = {}
        errors: list[Exception] = []
        for batch in batches:
            if not batch.is_answered:
                try:
                    leader = await self._leader(TopicPartition(self._topic, batch.partition), deadline)
                except kafka_errors.LeaderNotAvailableError as error:  # other partitions have a leader
                    errors.append(error)
                else:
                    by_leader.setdefault(leader, []).append(batch)
        calls = [self._manager.call_soon(self._append_at, *group, deadline, errors) for group in by_leader.items()]
        for call in calls:
            await self._wait_for(call, deadline + _WAIT_SECONDS)
        if errors:
            raise next(
                (error for error in errors if not isinstance(error, kafka_errors.KafkaError) or is_final(error)),
                errors[0],
            )

    async def _append_at(
        self, leader: int, batches: Sequence[OutgoingBatch], deadline: float, errors: list[Exception]
    ) -> None:
        """Send batches to the leader of their partitions, and collect the errors after which to send them again."""
        try:
            data = [
                ProduceRequest.TopicProduceData.PartitionProduceData(
                    index=batch.partition, records=batch.sealed(await self._sequence(batch.partition, deadline))
                )
                for batch in batches
            ]
            request = ProduceRequest(
                transactional_id=None,
                acks=self._acks,
                timeout_ms=_REQUEST_MS,
                topic_data=[ProduceRequest.TopicProduceData(name=self._topic, partition_data=data)],
                # From version 13 on, topics are identified by ids instead.
                min_version=3,
                max_version=12,
            )
            find_mismatch = partial(find_produce_mismatch, self._topic, [batch.partition for batch in batches])
            response = await self.send(leader, request, deadline, find_mismatch)
        except Exception as error:
            for batch in batches:
                batch.may_be_written = True
            errors.append(error)
            return
        [topic] = response.responses
        answers = {answer.index: answer for answer in topic.partition_responses}
        for batch in batches:
            temporary = batch.note(answers[batch.partition], TopicPartition(self._topic, batch.partition))
            self._note_sequence(batch)
            if temporary is not None:
                errors.append(temporary)

    async def _sequence(self, partition: int, deadline: float) -> _Sequence:
        """Return the sequence of a partition, which starts at the first batch of a producer."""
        if not self._is_idempotent:
            return _Sequence(-1, -1, -1)
        if partition not in self._sequences:
            if self._producer[0] < 0:
                await self._init_producer(deadline)
            self._sequences[partition] = _Sequence(*self._producer, 0)
        return self._sequences[partition]

    def _note_sequence(self, batch: OutgoingBatch) -> None:
        sequence = self._sequences.get(batch.partition)
        if sequence is None:
            return
        if batch.offset is not None:
            sequence.following = (sequence.following + batch.rows) & _MAX_SEQUENCE
        elif batch.is_unsealed or (batch.is_answered and batch.may_be_written):
            # The expected sequence is unknown: the next batch starts a new producer.
            del self._sequences[batch.partition]
            self._producer = (-1, -1)

    async def _init_producer(self, deadline: float) -> None:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_REQUEST_MS, producer_id=-1, producer_epoch=-1, max_version=4
        )
        response = await self.send_to_any(request, deadline, find_producer_mismatch)
        check_code(response.error_code, "a producer id")
        self._producer = (response.producer_id, response.producer_epoch)
