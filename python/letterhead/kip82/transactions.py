"""Interceptor that adds a common id to all records caused by one request, across services."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from letterhead.kip82.interceptors import ConsumerInterceptor, ProducerInterceptor
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord
from letterhead.kip82.serializers import UUID_BYTES, HeaderSerializer

__all__ = ["TransactionIds"]


# Context variable, local to a task or a thread, so that concurrent handlers do not share the id.
_current: ContextVar[uuid.UUID | None] = ContextVar("letterhead_kip82_transaction", default=None)


class TransactionIds(ProducerInterceptor, ConsumerInterceptor):
    """Add a transaction id to every record without one: the id of the record being handled, or a new one.

    Parameters
    ----------
    key : str or int, default "transaction-id"
        Key of the header with the id, a UUID.
    writes : KeyRange, optional
        The key range of this interceptor, for integer keys.

    Examples
    --------
    >>> from letterhead.kip82 import ConsumerRecord, ProducerInterceptors, ProducerRecord, TransactionIds
    >>> ids = TransactionIds()
    >>> chain = ProducerInterceptors([ids])
    >>> order = chain.on_send(ProducerRecord("orders", value=b"42"))
    >>> [received] = ConsumerRecord.read(order.to_bytes(), topic="orders")
    >>> with ids.handling(received):
    ...     invoice = chain.on_send(ProducerRecord("invoices", value=b"43"))
    >>> invoice.get_header("transaction-id") == order.get_header("transaction-id")
    True
    """

    def __init__(self, key: str | int = "transaction-id", *, writes: KeyRange | None = None) -> None:
        self._key = key
        self.writes = writes
        self.serializers: Mapping[str | int, HeaderSerializer] = {key: UUID_BYTES}

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Add an id to the record, unless it has one."""
        if self._key not in record.headers:
            record.set_header(self._key, _current.get() or uuid.uuid4())
        return record

    def id_of(self, record: ProducerRecord[Any, Any] | ConsumerRecord[Any, Any]) -> uuid.UUID | None:
        """Return the id of a record, or ``None``."""
        transaction_id: uuid.UUID | None = record._with_serializers(self.serializers).get_header(self._key)
        return transaction_id

    @contextmanager
    def handling(self, record: ConsumerRecord[Any, Any]) -> Iterator[uuid.UUID]:
        """Use the id of a record, or a new one, for all records sent within this context, and yield the id."""
        transaction_id = self.id_of(record) or uuid.uuid4()
        token = _current.set(transaction_id)
        try:
            yield transaction_id
        finally:
            _current.reset(token)
