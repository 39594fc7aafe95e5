"""What stands between a program and its records: interceptors, and chains of them, as KIP-42 has them.

One rule is another one here. There, what an interceptor raises is logged, and the record goes on without what that
interceptor was to do: a payload that could not be encrypted would be sent as it is. Here it is raised, unless the chain
is told to log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from letterhead.errors import check_name
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata, TopicPartition
from letterhead.kip82.serializers import HeaderSerializer

__all__ = ["ConsumerInterceptor", "ConsumerInterceptors", "ProducerInterceptor", "ProducerInterceptors"]

OnError: TypeAlias = Literal["raise", "log"]

_log = logging.getLogger("letterhead.kip82")
_NONE: Mapping[Any, HeaderSerializer] = MappingProxyType({})


class _Interceptor:
    """What both kinds have.

    Attributes
    ----------
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor writes and reads: the records of the chain have them.
    """

    serializers: Mapping[Any, HeaderSerializer] = _NONE

    def close(self) -> None:
        """Let go of what this interceptor holds."""


class ProducerInterceptor(_Interceptor):
    """Sees records before they are sent. Subclass it, and write what is needed.

    Attributes
    ----------
    writes : KeyRange or None
        The integer keys that this interceptor may put, set and remove; ``None`` is all. Its chain sees to it.
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor writes: the records of the chain have them.

    Examples
    --------
    >>> from letterhead.kip82 import HeaderSerializer, ProducerInterceptor, ProducerInterceptors, ProducerRecord, RESERVED
    >>> class Hops(ProducerInterceptor):
    ...     writes = RESERVED["client"]
    ...     serializers = {10_007: HeaderSerializer.of("short")}
    ...
    ...     def on_send(self, record):
    ...         record.set_header(10_007, (record.get_header(10_007) or 0) + 1)
    ...         return record
    >>> chain = ProducerInterceptors([Hops(), Hops()])
    >>> chain.on_send(ProducerRecord("orders", value=b"42", layout="int")).get_header(10_007)
    2
    """

    writes: KeyRange | None = None

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Give the record to be sent: this one, with other headers, or another one.

        Parameters
        ----------
        record : ProducerRecord
            What the interceptor before gave. Its headers are a copy for this interceptor.

        Returns
        -------
        ProducerRecord
            What the next one gets.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Learn what became of a record.

        Parameters
        ----------
        metadata : RecordMetadata or None
            Where it was written; ``None`` if it was not.
        error : Exception or None
            Why it was not.
        """


class ConsumerInterceptor(_Interceptor):
    """Sees records after they were fetched. Subclass it, and write what is needed.

    Attributes
    ----------
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor reads: the records of the chain have them.
    """

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Give the records that the program is to see: these, fewer, or others.

        Parameters
        ----------
        records : sequence of ConsumerRecord
            What the interceptor before gave. They are immutable; ``with_header``, ``without_headers`` and ``replace``
            give others.

        Returns
        -------
        sequence of ConsumerRecord
            What the next one gets.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Learn up to where records have been handled.

        Parameters
        ----------
        offsets : mapping of TopicPartition to int
            The offset of the next record, by partition.
        """


_I = TypeVar("_I", bound=_Interceptor)


class _Chain(Generic[_I]):
    def __init__(self, interceptors: Iterable[_I], *, on_error: OnError = "raise") -> None:
        check_name("on_error", on_error, ("raise", "log"))
        self._interceptors = tuple(interceptors)
        self._raises = on_error == "raise"
        self._serializers: dict[Any, HeaderSerializer] = {}
        for each in self._interceptors:
            for key, serializer in each.serializers.items():
                if self._serializers.setdefault(key, serializer) != serializer:
                    raise ValueError(f"two interceptors have different serializers for the key {key!r}")

    def close(self) -> None:
        """Close all interceptors."""
        self._tell("close", lambda each: each.close())

    def _tell(self, what: str, tell: Callable[[_I], None]) -> None:
        """Call every interceptor, also after one has failed; then say which have."""
        errors = []
        for each in self._interceptors:
            try:
                tell(each)
            except Exception as error:
                self._failed(each, what, error)
                errors.append(error)
        if errors and self._raises:
            raise ExceptionGroup(f"interceptors failed in {what}", errors)

    def _failed(self, interceptor: _I, what: str, error: Exception) -> None:
        where = f"in the interceptor {type(interceptor).__name__}, {what}"
        if self._raises:
            error.add_note(where)
        else:
            _log.error("%s: %s", where, error, exc_info=error)


class ProducerInterceptors(_Chain[ProducerInterceptor]):
    """Interceptors for producing, one after another.

    Parameters
    ----------
    interceptors : iterable of ProducerInterceptor
        The interceptors, in the order in which they see a record.
    on_error : {"raise", "log"}, default "raise"
        What to do with what one raises: raise it, so that the record is not sent; or log it under ``letterhead.kip82``
        and go on with the record as it was before that interceptor, which is KIP-42's rule.

    Raises
    ------
    ValueError
        If two have different serializers for the same key.
    """

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Give the record that is to be sent.

        Parameters
        ----------
        record : ProducerRecord
            The program's. It stays as it is.

        Returns
        -------
        ProducerRecord
            What the last interceptor gave.

        Raises
        ------
        Exception
            What an interceptor raised, with a note that names it, if ``on_error="raise"``.
        EncodeError
            Of that kind: if an interceptor changes a key outside its range (``limit_exceeded``).
        """
        whose = record.headers.writes if isinstance(record.headers, IntHeaders) else None
        record = record.with_serializers(self._serializers)
        for each in self._interceptors:
            try:
                made = each.on_send(_written_by(record, each.writes))
                if not isinstance(made, ProducerRecord):
                    raise TypeError(f"on_send must give a ProducerRecord, not {type(made).__name__}")
                record = made
            except Exception as error:
                self._failed(each, "on_send", error)
                if self._raises:
                    raise
        return _written_by(record, whose)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None = None) -> None:
        """Tell all interceptors what became of a record.

        Parameters
        ----------
        metadata : RecordMetadata or None
            Where it was written; ``None`` if it was not.
        error : Exception, optional
            Why it was not.

        Raises
        ------
        ExceptionGroup
            What interceptors raised, after all of them were told, if ``on_error="raise"``.
        """
        self._tell("on_acknowledgement", lambda each: each.on_acknowledgement(metadata, error))


class ConsumerInterceptors(_Chain[ConsumerInterceptor]):
    """Interceptors for consuming, one after another.

    Parameters
    ----------
    interceptors : iterable of ConsumerInterceptor
        The interceptors, in the order in which they see records.
    on_error : {"raise", "log"}, default "raise"
        As in :class:`ProducerInterceptors`; with ``"log"``, records go on as they were before the one that failed.

    Raises
    ------
    ValueError
        If two have different serializers for the same key.
    """

    def on_consume(self, records: Iterable[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Give the records that the program is to see.

        Parameters
        ----------
        records : iterable of ConsumerRecord
            What was fetched.

        Returns
        -------
        list of ConsumerRecord
            What the last interceptor gave.

        Raises
        ------
        Exception
            What an interceptor raised, with a note that names it, if ``on_error="raise"``.
        """
        seen = [record.with_serializers(self._serializers) for record in records]
        for each in self._interceptors:
            try:
                made = list(each.on_consume(seen))
                for record in made:
                    if not isinstance(record, ConsumerRecord):
                        raise TypeError(f"on_consume must give ConsumerRecords, not {type(record).__name__}")
                seen = made
            except Exception as error:
                self._failed(each, "on_consume", error)
                if self._raises:
                    raise
        return seen

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell all interceptors up to where records have been handled.

        Parameters
        ----------
        offsets : mapping of TopicPartition to int
            The offset of the next record, by partition.

        Raises
        ------
        ExceptionGroup
            What interceptors raised, after all of them were told, if ``on_error="raise"``.
        """
        self._tell("on_commit", lambda each: each.on_commit(offsets))


def _written_by(record: ProducerRecord[Any, Any], keys: KeyRange | None) -> ProducerRecord[Any, Any]:
    """Give a record with headers of its own, in which those keys may be changed."""
    headers = record.headers
    return record.replace(headers=headers.writing(keys) if isinstance(headers, IntHeaders) else headers.copy())
