"""Routing between logs by a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from letterhead.errors import EncodeError
from letterhead.kip82.interceptors import ProducerInterceptor
from letterhead.kip82.layouts import BLOCKS
from letterhead.kip82.records import ProducerRecord

__all__ = ["Routing"]


class Routing(ProducerInterceptor):
    """Sends a record to the topic that a header says.

    Parameters
    ----------
    key : str or int
        The header; its last value counts.
    routes : mapping of value to str
        The topic for each value, as :meth:`ProducerRecord.get_header` gives it.
    default : str, optional
        The topic where there is no such header, or no route for it.

    Raises
    ------
    EncodeError
        On sending, where there is neither a route nor a default (``missing_key``).

    Examples
    --------
    >>> from letterhead.kip82 import ProducerInterceptors, ProducerRecord, Routing
    >>> chain = ProducerInterceptors([Routing("region", {"eu": "orders-eu"}, default="orders-elsewhere")])
    >>> [chain.on_send(ProducerRecord("orders", headers={"region": region})).topic for region in ("eu", "us")]
    ['orders-eu', 'orders-elsewhere']
    """

    required = True

    def __init__(self, key: str | int, routes: Mapping[Any, str], default: str | None = None) -> None:
        self._key = key
        self._routes = dict(routes)
        self._default = default

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Give the record with another topic."""
        topic = self._routes.get(record.get_header(self._key), self._default)
        if topic is None:
            there = "is not there" if self._key not in record.headers else "has a value without a route"
            message = f"the header {self._key!r} {there}: add one, or give routing a default"
            raise EncodeError(message, format=BLOCKS[record.layout], code="missing_key", key=str(self._key))
        return record.replace(topic=topic)
