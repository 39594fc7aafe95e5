"""Interceptor that adds headers with the producing client, the id and the original cluster of a message."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from letterhead.kip82.interceptors import ConsumerInterceptor, ProducerInterceptor
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord
from letterhead.kip82.serializers import UUID_BYTES, HeaderSerializer

__all__ = ["Audit", "AuditEntry", "AuditKeys"]


class AuditKeys(NamedTuple):
    """Keys of the audit headers: text, or numbers for header formats with integer keys."""

    client_id: str | int = "client-id"
    message_id: str | int = "message-id"
    origin_cluster: str | int = "origin-cluster"


class AuditEntry(NamedTuple):
    """Audit headers of a consumed record; they are ``None`` if the record was not audited.

    Attributes
    ----------
    topic, partition, offset
        Position of the record.
    client_id : str or None
        Client that produced the record to this topic.
    message_id : uuid.UUID or None
        Id of the message, the same in every cluster.
    origin_cluster : str or None
        Cluster to which the message was first produced.
    """

    topic: str
    partition: int
    offset: int
    client_id: str | None
    message_id: uuid.UUID | None
    origin_cluster: str | None


class Audit(ProducerInterceptor, ConsumerInterceptor):
    """Add audit headers to produced records, and report the audit headers of consumed records.

    If a record is produced again elsewhere, the client id is replaced; the message id and the origin stay.

    Parameters
    ----------
    client_id : str
        Id of this client.
    cluster_id : str
        Id of the cluster to which the client produces.
    report : callable, optional
        Called with an :class:`AuditEntry` for every consumed record.
    keys : AuditKeys, optional
        Keys of the headers.
    writes : KeyRange, optional
        The key range of this interceptor, for integer keys.

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
        text = HeaderSerializer.for_type("string")
        serializers = zip(self._keys, (text, UUID_BYTES, text), strict=True)
        self.serializers: Mapping[str | int, HeaderSerializer] = dict(serializers)

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Set the client id; set the message id and the origin if they are missing."""
        record.set_header(self._keys.client_id, self._client_id)
        if self._keys.message_id not in record.headers:
            record.set_header(self._keys.message_id, uuid.uuid4())
        if self._keys.origin_cluster not in record.headers:
            record.set_header(self._keys.origin_cluster, self._cluster_id)
        return record

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Report the records, and return them unchanged."""
        for record in records:
            if self._report is not None:
                values = (record.get_header(key) for key in self._keys)
                self._report(AuditEntry(record.topic, record.partition, record.offset, *values))
        return records
