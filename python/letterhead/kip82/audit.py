"""Who produced a message, which one it is, and where it came from first."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from letterhead.kip82.interceptors import ConsumerInterceptor, ProducerInterceptor
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord
from letterhead.kip82.serializers import HeaderSerializer
from letterhead.kip82.transactions import UUID_BYTES

__all__ = ["Audit", "AuditEntry", "AuditKeys"]


class AuditKeys(NamedTuple):
    """The headers of an audit: text keys, or numbers for the layouts that have those.

    Attributes
    ----------
    client_id, message_id, origin_cluster : str or int
        The keys.
    """

    client_id: str | int = "client-id"
    message_id: str | int = "message-id"
    origin_cluster: str | int = "origin-cluster"


class AuditEntry(NamedTuple):
    """What is known of a record that was consumed.

    Attributes
    ----------
    topic : str
        Where it was.
    partition, offset : int
        Where in it.
    client_id : str or None
        The client that produced it there.
    message_id : uuid.UUID or None
        The message, the same in every cluster.
    origin_cluster : str or None
        The cluster into which it was first produced.
    """

    topic: str
    partition: int
    offset: int
    client_id: str | None
    message_id: uuid.UUID | None
    origin_cluster: str | None


class Audit(ProducerInterceptor, ConsumerInterceptor):
    """Says in headers who produced a record, and reports what is consumed.

    The client is the last one that produced the record; its identity and its first cluster stay as they are when it
    is produced again somewhere else.

    Parameters
    ----------
    client_id : str
        This client.
    cluster_id : str
        The cluster that it produces into.
    report : callable, optional
        Gets an :class:`AuditEntry` of every record that is consumed. One that nobody audited has ``None`` in it.
    keys : AuditKeys, optional
        The headers.
    writes : KeyRange, optional
        The range of its writer, where keys are numbers.

    Examples
    --------
    >>> from letterhead.kip82 import Audit, ConsumerInterceptors, ConsumerRecord, ProducerInterceptors, ProducerRecord
    >>> entries = []
    >>> audit = Audit("shop-1", "cluster-a", report=entries.append)
    >>> sent = ProducerInterceptors([audit]).on_send(ProducerRecord("orders", value=b"42"))
    >>> seen = ConsumerInterceptors([audit]).on_consume(ConsumerRecord.read(sent.to_bytes(3), topic="orders"))
    >>> [(entry.client_id, entry.origin_cluster, entry.offset) for entry in entries]
    [('shop-1', 'cluster-a', 3)]
    """

    def __init__(
        self,
        client_id: str,
        cluster_id: str,
        *,
        report: Callable[[AuditEntry], Any] | None = None,
        keys: AuditKeys | None = None,
        writes: KeyRange | None = None,
    ) -> None:
        self._client_id = client_id
        self._cluster_id = cluster_id
        self._report = report
        self._keys = keys or AuditKeys()
        self.writes = writes
        text = HeaderSerializer.of("string")
        self.serializers: Mapping[str | int, HeaderSerializer] = dict(
            zip(self._keys, (text, UUID_BYTES, text), strict=True)
        )

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Set the client; set the message and its first cluster, if they are not."""
        record.set_header(self._keys.client_id, self._client_id)
        if self._keys.message_id not in record.headers:
            record.set_header(self._keys.message_id, uuid.uuid4())
        if self._keys.origin_cluster not in record.headers:
            record.set_header(self._keys.origin_cluster, self._cluster_id)
        return record

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Report the records, and give them as they are."""
        for record in records:
            if self._report is not None:
                found = (record.get_header(key) for key in self._keys)
                self._report(AuditEntry(record.topic, record.partition, record.offset, *found))
        return records
