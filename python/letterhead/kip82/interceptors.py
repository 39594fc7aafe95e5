"""Interceptors, which see records between a program and its log, and chains of them, as in KIP-42.

:class:`Producer`, :class:`Consumer` and :class:`MessageLog` call the chains. As in Kafka, an exception of an interceptor is
logged, and the next one gets the record as it was before. There is one difference: an interceptor that is ``required``
stops the record, because a payload that could not be encrypted must not be sent as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

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
    """What both types have.

    Attributes
    ----------
    required : bool
        Whether records must not pass this interceptor if it fails: its exceptions in ``on_send`` and ``on_consume`` are
        always raised.
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor writes and reads: the records of the chain have them.
    """

    required: bool = False
    serializers: Mapping[Any, HeaderSerializer] = _NONE

    def close(self) -> None:
        """Release what this interceptor holds."""


class ProducerInterceptor(_Interceptor):
    """Sees records before they are sent. Subclass it, and write what is needed.

    Attributes
    ----------
    writes : KeyRange or None
        The integer keys that this interceptor may put, set and remove; ``None`` is all. Its chain enforces it.
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor writes: the records of the chain have them.
    required : bool
        Whether a record is not sent if this interceptor fails; false by default.

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
        """Return the record to be sent: this one, with other headers, or another one.

        Called before the key and the value are serialized.

        Parameters
        ----------
        record : ProducerRecord
            What the interceptor before returned. Its headers are a copy for this interceptor.

        Returns
        -------
        ProducerRecord
            What the next interceptor gets.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Called when a record was written, or could not be sent.

        Parameters
        ----------
        metadata : RecordMetadata or None
            Where it was written. If it was not: its topic, its partition (-1 if it names none) and the offset -1.
        error : Exception or None
            Why it was not written.
        """


class ConsumerInterceptor(_Interceptor):
    """Sees records after they were fetched. Subclass it, and write what is needed.

    Attributes
    ----------
    serializers : mapping of key to HeaderSerializer
        For the keys that this interceptor reads: the records of the chain have them.
    required : bool
        Whether records are not handed on if this interceptor fails; false by default.
    """

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Return the records for the program: these, fewer, or others.

        Parameters
        ----------
        records : sequence of ConsumerRecord
            What the interceptor before returned. They are immutable; ``with_header``, ``without_headers`` and
            ``replace`` return others.

        Returns
        -------
        sequence of ConsumerRecord
            What the next interceptor gets.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Called when offsets were committed.

        Parameters
        ----------
        offsets : mapping of TopicPartition to int
            The offset of the next record, by partition.
        """


_I = TypeVar("_I", bound=_Interceptor)


class _Chain(Generic[_I]):
    def __init__(self, interceptors: Iterable[_I] = (), *, on_error: OnError = "log") -> None:
        check_name("on_error", on_error, ("raise", "log"))
        self._interceptors = tuple(interceptors)
        self._raises = on_error == "raise"
        self._serializers: dict[Any, HeaderSerializer] = {}
        for each in self._interceptors:
            for key, serializer in each.serializers.items():
                if self._serializers.setdefault(key, serializer) != serializer:
                    raise ValueError(f"two interceptors have different serializers for the key {key!r}")

    @classmethod
    def of(cls, interceptors: Self | Iterable[_I]) -> Self:
        """Return a chain as it is, or make one of interceptors."""
        return interceptors if isinstance(interceptors, cls) else cls(cast("Iterable[_I]", interceptors))

    def __len__(self) -> int:
        return len(self._interceptors)

    def close(self) -> None:
        """Close all interceptors."""
        self._call_all("close", lambda each: each.close(), raises=self._raises)

    def _call_all(self, what: str, call: Callable[[_I], None], *, raises: bool) -> None:
        """Call every interceptor, also after one has failed; then raise what they raised, or only log it."""
        errors = []
        for each in self._interceptors:
            try:
                call(each)
            except Exception as error:
                self._failed(each, what, error, raises=raises)
                errors.append(error)
        if errors and raises:
            raise ExceptionGroup(f"interceptors failed in {what}", errors)

    def _failed(self, interceptor: _I, what: str, error: Exception, *, raises: bool) -> None:
        where = f"in the interceptor {type(interceptor).__name__}, {what}"
        if raises:
            error.add_note(where)
        else:
            _log.error("%s: %s", where, error, exc_info=error)


class ProducerInterceptors(_Chain[ProducerInterceptor]):
    """Interceptors for producing, one after another.

    Parameters
    ----------
    interceptors : iterable of ProducerInterceptor
        The interceptors, in the order in which they see a record.
    on_error : {"log", "raise"}, default "log"
        What to do with an exception of an interceptor: log it under ``letterhead.kip82`` and go on with the record as it
        was before that interceptor, as Kafka does; or raise it, so that the record is not sent. An interceptor that is
        ``required`` always raises.

    Raises
    ------
    ValueError
        If two have different serializers for the same key.
    """

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record that is to be sent.

        Parameters
        ----------
        record : ProducerRecord
            The program's. It stays as it is.

        Returns
        -------
        ProducerRecord
            What the last interceptor returned.

        Raises
        ------
        Exception
            What an interceptor raised, with a note that names it, if it is required or ``on_error="raise"``. Among
            these is ``EncodeError`` if it changes a key outside its range (``limit_exceeded``).
        """
        whose = record.headers.writes if isinstance(record.headers, IntHeaders) else None
        record = record.with_serializers(self._serializers)
        for each in self._interceptors:
            try:
                made = each.on_send(_written_by(record, each.writes))
                if not isinstance(made, ProducerRecord):
                    raise TypeError(f"on_send must return a ProducerRecord, not {type(made).__name__}")
                record = made
            except Exception as error:
                raises = self._raises or each.required
                self._failed(each, "on_send", error, raises=raises)
                if raises:
                    raise
        return _written_by(record, whose)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None = None) -> None:
        """Tell all interceptors that a record was written, or could not be sent.

        Parameters
        ----------
        metadata : RecordMetadata or None
            Where it was written. If it was not: its topic, its partition (-1 if it names none) and the offset -1.
        error : Exception, optional
            Why it was not written.

        Raises
        ------
        ExceptionGroup
            What interceptors raised, after all of them were called, if ``on_error="raise"``. With an error of the record
            they are logged: that error is what the program gets.
        """
        self._call_all(
            "on_acknowledgement",
            lambda each: each.on_acknowledgement(metadata, error),
            raises=self._raises and error is None,
        )

    def around(
        self,
        records: Iterable[ProducerRecord[Any, Any]],
        write: Callable[[list[ProducerRecord[Any, Any]]], Sequence[RecordMetadata]],
    ) -> Sequence[RecordMetadata]:
        """Write records, with ``on_send`` before and ``on_acknowledgement`` after, also if that failed.

        Parameters
        ----------
        records : iterable of ProducerRecord
            The program's.
        write : callable
            Writes what the interceptors returned, all of it or nothing, and returns where.

        Returns
        -------
        sequence of RecordMetadata
            What ``write`` returned.

        Raises
        ------
        Exception
            What ``on_send`` or ``write`` raised, after the interceptors were told.
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
    """Interceptors for consuming, one after another.

    Parameters
    ----------
    interceptors : iterable of ConsumerInterceptor
        The interceptors, in the order in which they see records.
    on_error : {"log", "raise"}, default "log"
        As in :class:`ProducerInterceptors`; with ``"log"``, records go on as they were before the one that failed.

    Raises
    ------
    ValueError
        If two have different serializers for the same key.
    """

    def on_consume(self, records: Iterable[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Return the records for the program.

        Parameters
        ----------
        records : iterable of ConsumerRecord
            What was fetched.

        Returns
        -------
        list of ConsumerRecord
            What the last interceptor returned.

        Raises
        ------
        Exception
            What an interceptor raised, with a note that names it, if it is required or ``on_error="raise"``.
        """
        seen = [record.with_serializers(self._serializers) for record in records]
        for each in self._interceptors:
            try:
                made = list(each.on_consume(list(seen)))  # a copy, as it may change the list and then fail
                for record in made:
                    if not isinstance(record, ConsumerRecord):
                        raise TypeError(f"on_consume must return ConsumerRecords, not {type(record).__name__}")
                seen = made
            except Exception as error:
                raises = self._raises or each.required
                self._failed(each, "on_consume", error, raises=raises)
                if raises:
                    raise
        return seen

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell all interceptors that offsets were committed.

        Parameters
        ----------
        offsets : mapping of TopicPartition to int
            The offset of the next record, by partition.

        Raises
        ------
        ExceptionGroup
            What interceptors raised, after all of them were called, if ``on_error="raise"``.
        """
        self._call_all("on_commit", lambda each: each.on_commit(offsets), raises=self._raises)


def _written_by(record: ProducerRecord[Any, Any], keys: KeyRange | None) -> ProducerRecord[Any, Any]:
    """Return a record with headers of its own, in which those keys may be changed."""
    headers = record.headers
    return record.replace(headers=headers.writing(keys) if isinstance(headers, IntHeaders) else headers.copy())
