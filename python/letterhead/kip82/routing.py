"""Interceptor that chooses the topic of records by a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from letterhead.errors import EncodeError
from letterhead.kip82.header_formats import HEADERS_FORMATS
from letterhead.kip82.interceptors import ProducerInterceptor
from letterhead.kip82.records import ProducerRecord

__all__ = ["Routing"]


class Routing(ProducerInterceptor):
    """Send records to a topic chosen by the value of a header.

    Parameters
    ----------
    key : str or int
        Key of the header; if it repeats, its last value is used.
    routes : mapping of value to str
        Topic for each value; values are as returned by :meth:`ProducerRecord.get_header`.
    default : str, optional
        Topic for records without the header or without a route.

    Raises
    ------
    EncodeError
        On sending a record without a route if there is no default (``missing_key``).

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
        """Return the record with the topic of its route."""
        topic = self._routes.get(record.get_header(self._key), self._default)
        if topic is None:
            problem = "is missing" if self._key not in record.headers else "has a value without a route"
            message = f"the header {self._key!r} {problem}: add the header or the route, or pass default="
            raise EncodeError(
                message, format=HEADERS_FORMATS[record.header_format], code="missing_key", key=str(self._key)
            )
        return record.replace(topic=topic)
