"""Interceptors that inspect or change records between a program and a log, and chains of interceptors, as in KIP-42.

:class:`Producer`, :class:`Consumer` and :class:`MessageLog` call the chains. As in Kafka, an exception of an
interceptor is logged, and the next interceptor gets the unchanged record. Unlike in Kafka, a failure of a ``required``
interceptor stops the record: a value that could not be encrypted must not be sent in plain text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

from letterhead._names import check_name
from letterhead._topic_partition import TopicPartition
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata
from letterhead.kip82.serializers import HeaderSerializer

__all__ = ["ConsumerInterceptor", "ConsumerInterceptors", "ProducerInterceptor", "ProducerInterceptors"]

InterceptorErrors: TypeAlias = Literal["raise", "log"]

_log = logging.getLogger("letterhead.kip82")


class _Interceptor:
    required: bool = False
    serializers: Mapping[Any, HeaderSerializer] = MappingProxyType({})

    def close(self) -> None:
        """Release the resources of this interceptor."""


class ProducerInterceptor(_Interceptor):
    """Base class of interceptors for records to be sent. Override the methods that you need.

    Attributes
    ----------
    writes : KeyRange or None
        Integer keys that this interceptor may put, set and remove, enforced by the chain; ``None`` means all.
    serializers : mapping of key to HeaderSerializer
        Serializers for the headers of this interceptor. The chain adds them to its records.
    required : bool
        Whether an exception in ``on_send`` is raised and stops the record; default false.

    Examples
    --------
    >>> from letterhead.kip82 import HeaderSerializer, ProducerInterceptor, ProducerInterceptors, ProducerRecord, RESERVED
    >>> class Hops(ProducerInterceptor):
    ...     writes = RESERVED["client"]
    ...     serializers = {10_007: HeaderSerializer.for_type("short")}
    ...
    ...     def on_send(self, record):
    ...         record.set_header(10_007, (record.get_header(10_007) or 0) + 1)
    ...         return record
    >>> chain = ProducerInterceptors([Hops(), Hops()])
    >>> chain.on_send(ProducerRecord("orders", value=b"42", header_format="int")).get_header(10_007)
    2
    """

    writes: KeyRange | None = None

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record to be sent, before its key and value are serialized.

        The argument is the result of the previous interceptor. Its headers are a copy, and may be changed.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Handle the result of sending a record.

        Parameters
        ----------
        metadata : RecordMetadata or None
            Position of the written record. For a record that was not written: its topic, its partition (-1 if unset)
            and the offset -1.
        error : Exception or None
            Reason if the record was not written.
        """


class ConsumerInterceptor(_Interceptor):
    """Base class of interceptors for fetched records. Override the methods that you need.

    Attributes
    ----------
    serializers : mapping of key to HeaderSerializer
        Serializers for the headers of this interceptor. The chain adds them to its records.
    required : bool
        Whether an exception in ``on_consume`` is raised and stops the records; default false.
    """

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Return the records for the program: the same, fewer, or others.

        The argument is the result of the previous interceptor. Records are immutable; ``with_header``,
        ``without_headers`` and ``replace`` return changed copies.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Handle a commit; ``offsets`` contains the offset of the next record for each partition."""


_I = TypeVar("_I", bound=_Interceptor)
_R = TypeVar("_R")


class _Chain(Generic[_I]):
    def __init__(self, interceptors: Iterable[_I] = (), *, errors: InterceptorErrors = "log") -> None:
        check_name("errors", errors, ("raise", "log"))
        self._interceptors = tuple(interceptors)
        self._raises = errors == "raise"
        self._serializers: dict[Any, HeaderSerializer] = {}
        for interceptor in self._interceptors:
            for key, serializer in interceptor.serializers.items():
                if self._serializers.setdefault(key, serializer) != serializer:
                    raise ValueError(f"two interceptors have different serializers for the key {key!r}")

    @classmethod
    def _from(cls, interceptors: Self | Iterable[_I]) -> Self:
        """Return a chain of interceptors; an existing chain is returned unchanged."""
        return interceptors if isinstance(interceptors, cls) else cls(cast("Iterable[_I]", interceptors))

    def __len__(self) -> int:
        return len(self._interceptors)

    def close(self) -> None:
        """Close all interceptors."""
        self._call_all("close", lambda interceptor: interceptor.close(), raises=self._raises)

    def _apply(self, method: str, value: _R, call: Callable[[_I, _R], _R]) -> _R:
        """Pass a value through the interceptors; skip a failing interceptor unless it is required."""
        for interceptor in self._interceptors:
            try:
                value = call(interceptor, value)
            except Exception as error:
                raises = self._raises or interceptor.required
                self._report_failure(interceptor, method, error, raises=raises)
                if raises:
                    raise
        return value

    def _call_all(self, method: str, call: Callable[[_I], None], *, raises: bool) -> None:
        """Call every interceptor even if some fail; then raise their exceptions if ``raises``, or log them."""
        errors = []
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except Exception as error:
                self._report_failure(interceptor, method, error, raises=raises)
                errors.append(error)
        if errors and raises:
            raise ExceptionGroup(f"interceptors failed in {method}", errors)

    def _report_failure(self, interceptor: _I, method: str, error: Exception, *, raises: bool) -> None:
        where = f"in the interceptor {type(interceptor).__name__}, {method}"
        if raises:
            error.add_note(where)
        else:
            _log.error("%s: %s", where, error, exc_info=error)


class ProducerInterceptors(_Chain[ProducerInterceptor]):
    """Chain of producer interceptors.

    Parameters
    ----------
    interceptors : iterable of ProducerInterceptor
        The interceptors, in the order in which they are called.
    errors : {"log", "raise"}, default "log"
        What to do with an exception of an interceptor. As in Kafka, ``"log"`` logs it under ``letterhead.kip82`` and
        continues with the record that the interceptor received. With ``"raise"``, it is raised and the record is not
        sent. Exceptions of ``required`` interceptors are always raised.

    Raises
    ------
    ValueError
        If two interceptors have different serializers for a key.
    """

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Pass a record through all interceptors, and return the result; the argument is not modified.

        Raises
        ------
        Exception
            Any exception of a required interceptor, or of any interceptor with ``errors="raise"``; a note names the
            interceptor. Changing a key outside its range is an ``EncodeError`` (``limit_exceeded``).
        """
        writes = record.headers._writes if isinstance(record.headers, IntHeaders) else None

        def send(interceptor: ProducerInterceptor, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            result = interceptor.on_send(_writable(record, interceptor.writes))
            if not isinstance(result, ProducerRecord):
                raise TypeError(f"on_send must return a ProducerRecord, not {type(result).__name__}")
            return result

        return _writable(self._apply("on_send", record._with_serializers(self._serializers), send), writes)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None = None) -> None:
        """Pass the result of sending a record to all interceptors; see :class:`ProducerInterceptor`.

        Raises
        ------
        ExceptionGroup
            With ``errors="raise"``, the exceptions of the interceptors, after all were called. If sending the record
            failed, they are only logged, because the program gets the error of the record.
        """
        raises = self._raises and error is None
        self._call_all(
            "on_acknowledgement", lambda interceptor: interceptor.on_acknowledgement(metadata, error), raises=raises
        )

    def _around(
        self,
        records: Iterable[ProducerRecord[Any, Any]],
        write: Callable[[list[ProducerRecord[Any, Any]]], Sequence[RecordMetadata]],
    ) -> Sequence[RecordMetadata]:
        """Call ``on_send``, write the records, and call ``on_acknowledgement``, even if writing fails.

        Parameters
        ----------
        records : iterable of ProducerRecord
            The records of the program.
        write : callable
            Writes the records from the interceptors, all or none, and returns their positions.
        """
        sent: list[ProducerRecord[Any, Any]] = []
        try:
            for record in records:
                sent.append(record)
                sent[-1] = self.on_send(record)
            written = write(sent)
        except Exception as error:
            for record in sent:
                partition = -1 if record.partition is None else record.partition
                self.on_acknowledgement(RecordMetadata(record.topic, partition, -1), error)
            raise
        for metadata in written:
            self.on_acknowledgement(metadata)
        return written


class ConsumerInterceptors(_Chain[ConsumerInterceptor]):
    """Chain of consumer interceptors; parameters and errors are as in :class:`ProducerInterceptors`."""

    def on_consume(self, records: Iterable[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Pass records through all interceptors, and return the result.

        Raises
        ------
        Exception
            Any exception of a required interceptor, or of any interceptor with ``errors="raise"``; a note names the
            interceptor.
        """

        def consume(
            interceptor: ConsumerInterceptor, records: list[ConsumerRecord[Any, Any]]
        ) -> list[ConsumerRecord[Any, Any]]:
            result = list(interceptor.on_consume(list(records)))  # an interceptor may change its list before it fails
            for record in result:
                if not isinstance(record, ConsumerRecord):
                    raise TypeError(f"on_consume must return ConsumerRecords, not {type(record).__name__}")
            return result

        return self._apply("on_consume", [record._with_serializers(self._serializers) for record in records], consume)

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Pass committed offsets to all interceptors.

        Raises
        ------
        ExceptionGroup
            With ``errors="raise"``, the exceptions of the interceptors, after all were called.
        """
        self._call_all("on_commit", lambda interceptor: interceptor.on_commit(offsets), raises=self._raises)


def _writable(record: ProducerRecord[Any, Any], keys: KeyRange | None) -> ProducerRecord[Any, Any]:
    """Return the record with a copy of its headers that allows changes to keys of a range."""
    headers = record.headers
    return record.replace(headers=headers._writing(keys) if isinstance(headers, IntHeaders) else headers.copy())
