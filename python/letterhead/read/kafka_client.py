"""What brokers are asked while a topic is read: where it is, its offsets, and its record sets as they are stored.

kafka-python carries it: connections, TLS, SASL and the layout of requests. Its consumer is no use here, because it takes
record sets apart. What is used instead is no promised interface, so it is used in this file alone, for the versions that
the extra ``kafka`` names, and ``tests/kafka/test_topic.py`` holds its shape.
"""

from __future__ import annotations

import os
import random
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from letterhead._context_managers import Closing
from letterhead._optional_dependencies import how_to_install
from letterhead.read.kafka_options import Settings

try:
    from kafka import errors as kafka_errors
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
    from kafka.protocol.metadata import MetadataRequest
except ImportError as error:
    # One that is too old is there, and lacks what is asked of it.
    version = "kafka-python 3.0.12 or later"
    raise ImportError(how_to_install("reading a topic", version, "'letterhead[kafka]'")) from error

__all__ = ["EARLIEST", "LATEST", "Client", "Fetched", "Isolation", "Place"]

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}

LATEST, EARLIEST = -1, -2
"""What stands for a time when offsets are asked for."""

_NO_SESSION = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}
_BACKOFF = 0.1
_MOST_FRAME = 128 << 20
"""Bytes that an answer may have beyond what was asked for: a single batch is sent whole, however large it is."""

_TRANSPORT = frozenset(KafkaConnectionManager.DEFAULT_CONFIG)


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Fetched(NamedTuple):
    """What a fetch brought.

    Attributes
    ----------
    records : bytes
        A record set; its last batch may be torn.
    first, end : int
        Offsets: the first one that is still there, and the one after the last that may be read. Both are -1 where the
        offset that was asked for lies outside.
    aborted : list of (producer_id, first_offset)
        Transactions in it that were aborted; only ``read_committed`` asks for them.
    """

    records: Any
    first: int
    end: int
    aborted: list[tuple[int, int]]


class Client(Closing):
    """Connections to a cluster, and a thread that looks after them. What can be tried again is, until a time is over.

    Parameters
    ----------
    settings : Settings
        Where the brokers are, and how to reach them.

    Attributes
    ----------
    timeout : float
        Seconds until it is over.
    """

    def __init__(self, settings: Settings) -> None:
        given = {name: value for name, value in settings.transport.items() if name in _TRANSPORT}
        self._servers = settings.servers
        self._protocol = given.get("security_protocol", "PLAINTEXT")
        self._mechanism = given.get("sasl_mechanism")
        self.timeout = settings.timeout_ms / 1000
        self._fetch_bytes = settings.fetch_bytes
        self._leaders: dict[Place, int] = {}
        own = {"receive_message_max_bytes": settings.fetch_bytes + _MOST_FRAME, "client_id": "letterhead"}
        if self._protocol.endswith("SSL") and "ssl_context" not in given:
            own["ssl_context"] = _trust(settings.transport)
        self._process = os.getpid()
        self._net = NetworkSelector(client_id=given.get("client_id", "letterhead"))
        self._manager = KafkaConnectionManager(self._net, **{**own, **given})
        self._net.start()

    def close(self) -> None:
        """Close the connections, and end the thread. What a parent has open is the parent's to close."""
        if os.getpid() == self._process and not self._manager.closed:
            self._net.run(self._manager.close)
            self._net.close()

    def topics(self) -> list[str]:
        """Give the names of all topics that may be seen, those apart that are Kafka's own."""
        found = self._run(self._metadata, None)
        return sorted(topic.name for topic in found.topics if not topic.is_internal and not topic.error_code)

    def partitions(self, topics: Iterable[str]) -> list[Place]:
        """Give the partitions of some topics.

        Raises
        ------
        ValueError
            If there is no such topic.
        """
        names = list(topics)
        places = []
        for topic in sorted(self._run(self._metadata, names).topics, key=lambda topic: names.index(topic.name)):
            places += [
                Place(topic.name, number) for number in sorted(each.partition_index for each in topic.partitions)
            ]
        return places

    def offsets(self, times: Mapping[Place, int], isolation: Isolation) -> dict[Place, int]:
        """Find offsets by time.

        Parameters
        ----------
        times : mapping of Place to int
            Milliseconds since 1970, :data:`EARLIEST` or :data:`LATEST`. With ``"read_committed"`` the latest is where
            the oldest open transaction begins.
        isolation : {"read_uncommitted", "read_committed"}
            What may be read.

        Returns
        -------
        dict of Place to int
            The first offset that is not older, -1 where all are.
        """
        found: dict[Place, int] = {}

        async def ask() -> None:
            by_leader: dict[int, list[Place]] = {}
            for place in times:
                if place not in found:
                    by_leader.setdefault(await self._leader(place), []).append(place)
            for leader, places in by_leader.items():
                topics = [
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                                partition_index=place.partition, current_leader_epoch=-1, timestamp=times[place]
                            )
                            for place in places
                            if place.topic == topic
                        ],
                    )
                    for topic in dict.fromkeys(place.topic for place in places)
                ]
                request = ListOffsetsRequest(
                    replica_id=-1, isolation_level=_ISOLATION[isolation], topics=topics, min_version=2, max_version=7
                )
                answer = await self._ask(leader, request)
                for topic in answer.topics:
                    for each in topic.partitions:
                        _check(each.error_code, Place(topic.name, each.partition_index))
                        found[Place(topic.name, each.partition_index)] = each.offset

        self._run(self._retried, ask)
        return found

    def fetch(self, place: Place, offset: int, isolation: Isolation, *, wait_ms: int = 500) -> Any:
        """Begin a fetch, which goes on beside the caller. :meth:`fetched` gives what it brings.

        Parameters
        ----------
        place : Place
            Of what.
        offset : int
            From where.
        isolation : {"read_uncommitted", "read_committed"}
            What may be read.
        wait_ms : int, default 500
            How long the broker waits where there is nothing.

        Returns
        -------
        object
            For :meth:`fetched`.
        """

        async def ask() -> Fetched:
            partition = FetchRequest.FetchTopic.FetchPartition(
                partition=place.partition,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=self._fetch_bytes,
            )
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=self._fetch_bytes,
                isolation_level=_ISOLATION[isolation],
                topics=[FetchRequest.FetchTopic(topic=place.topic, partitions=[partition])],
                rack_id="",
                # With the next version topics go by an id, and the answer cannot be read without a table of them.
                min_version=4,
                max_version=12,
                **_NO_SESSION,
            )
            answer = await self._ask(await self._leader(place), request)
            _check(answer.error_code, place)
            [topic] = answer.responses
            [found] = topic.partitions
            end = found.last_stable_offset if _ISOLATION[isolation] else found.high_watermark
            if found.error_code == kafka_errors.OffsetOutOfRangeError.errno:
                return Fetched(b"", -1, -1, [])
            _check(found.error_code, place)
            if answer.throttle_time_ms and not found.records:  # the broker has more, and a quota keeps it back
                raise kafka_errors.NodeNotReadyError(f"throttled for {answer.throttle_time_ms} ms")
            aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
            return Fetched(found.records or b"", found.log_start_offset, end, aborted)

        return self._manager.call_soon(self._retried, ask)

    def fetched(self, begun: Any) -> Fetched:
        """Wait for what a fetch brings."""
        found: Fetched = self._run(self._manager.wait_for, begun, None)
        return found

    def _run(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        if os.getpid() != self._process:  # its thread is not in this one, and nobody would answer
            raise RuntimeError("the connections were opened before a fork: open others in the new process")
        try:
            return self._net.run(ask, *arguments)
        except kafka_errors.KafkaError as error:
            raise self._explained(error) from error

    async def _metadata(self, topics: list[str] | None) -> Any:
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]

        async def ask() -> Any:
            request = MetadataRequest(
                topics=wanted,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
                max_version=9,
            )
            answer = await self._ask_any(request)
            for topic in answer.topics:
                if topics is not None and topic.error_code in _NO_TOPIC:
                    raise ValueError(f"there is no topic {topic.name!r} at {self._servers}")
                if topics is not None:
                    _check(topic.error_code, topic.name)
            self._manager.cluster.update_metadata(answer)
            for topic in answer.topics:
                for each in topic.partitions:
                    self._leaders[Place(topic.name, each.partition_index)] = each.leader_id
            return answer

        return await self._retried(ask)

    async def _leader(self, place: Place) -> int:
        if self._leaders.get(place, -1) < 0:
            answer = await self._metadata([place.topic])
            if place.partition not in (each.partition_index for topic in answer.topics for each in topic.partitions):
                raise ValueError(f"topic {place.topic!r} has no partition {place.partition}")
            if self._leaders[place] < 0:
                raise kafka_errors.LeaderNotAvailableError(str(place))
        return self._leaders[place]

    async def _ask_any(self, request: Any) -> Any:
        """Ask a broker, and the next one where that fails: those that are known before those that were named."""
        cluster = self._manager.cluster
        known, named = (
            random.sample(brokers, len(brokers)) for brokers in (cluster.brokers(), cluster.bootstrap_brokers())
        )
        failure: Exception = kafka_errors.NodeNotReadyError(self._servers)
        for broker in [*known, *named]:
            try:
                return await self._ask(broker.node_id, request)
            except kafka_errors.NodeNotReadyError:
                continue  # it failed a moment ago, and what it said then is known
            except kafka_errors.KafkaError as error:
                if _final(error):
                    raise
                failure = error
        raise failure

    async def _ask(self, node: Any, request: Any) -> Any:
        # Whether a failed connection is a reason to look for a new leader is decided here, not by kafka-python.
        connection = self._manager.get_connection(node, refresh_metadata_on_err=False)
        await connection
        return await connection.send_request(request)

    async def _retried(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        until = time.monotonic() + self.timeout
        said: Exception | None = None
        while True:
            try:
                return await ask()
            except kafka_errors.KafkaError as error:
                if _final(error):
                    raise
                if said is None or not isinstance(error, kafka_errors.NodeNotReadyError):
                    said = error
                self._leaders.clear()
                if time.monotonic() > until:
                    raise kafka_errors.KafkaTimeoutError(str(said)) from error
            await self._net.sleep(_BACKOFF)

    def _explained(self, error: Exception) -> Exception:
        """Say what went wrong and what can be done, in words that hold no setting."""
        if isinstance(error, _REFUSED):
            how = f" by {self._mechanism}" if self._mechanism else ""
            return PermissionError(f"{self._servers} refused who is asking{how}: {_words(error)}")
        if isinstance(error, kafka_errors.AuthorizationError):
            return PermissionError(f"{self._servers} does not allow it: {_words(error)}")
        if _untrusted(error):
            return ConnectionError(
                f"the certificate of {self._servers} is not trusted: {_words(error)}; name the file of the authority "
                "that signed it in ssl_cafile"
            )
        if isinstance(error, kafka_errors.InvalidReceiveError):
            return ConnectionError(
                f"{self._servers} does not speak Kafka's protocol over {self._protocol}: name the security_protocol of "
                f"the port ({_words(error)})"
            )
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            return TimeoutError(
                f"no answer from {self._servers} in {self.timeout:g} s: {_words(error)} (security protocol {self._protocol})"
            )
        return RuntimeError(f"{self._servers}: {_words(error)}")


_NO_TOPIC = (kafka_errors.UnknownTopicOrPartitionError.errno, kafka_errors.InvalidTopicError.errno)
_REFUSED = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)


def _trust(given: Mapping[str, Any]) -> ssl.SSLContext:
    """Whom to trust, and as whom to be known: from files, or from PEM in the settings."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = given.get("ssl_check_hostname", True)
    try:
        _add_trust(context, given)
    except (OSError, ssl.SSLError) as error:
        files = [f"{name} {given[name]}" for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile") if name in given]
        raise ValueError(
            f"a certificate or its key cannot be read ({', '.join(files) or 'from text'}): {error}"
        ) from None
    return context


def _add_trust(context: ssl.SSLContext, given: Mapping[str, Any]) -> None:
    authorities = {"cafile": given.get("ssl_cafile"), "cadata": given.get("ssl_ca_pem")}
    if any(authorities.values()):
        context.load_verify_locations(**authorities)
    else:
        context.load_default_certs()
    if "ssl_crlfile" in given:
        context.load_verify_locations(given["ssl_crlfile"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    # Without a password OpenSSL would ask for one on the terminal.
    password = given.get("ssl_password", "")
    if "ssl_certfile" in given:
        context.load_cert_chain(given["ssl_certfile"], given.get("ssl_keyfile"), password)
    elif "ssl_cert_pem" in given:
        # OpenSSL takes a key from a file alone: this one is its owner's, and gone when it is read.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(given["ssl_cert_pem"])
            pem.flush()
            context.load_cert_chain(pem.name, password=password)


def _check(code: int, where: object) -> None:
    if code:
        raise kafka_errors.for_code(code)(str(where))


def _final(error: Exception) -> bool:
    """Whether the same would happen again."""
    if isinstance(error, kafka_errors.UnknownBrokerIdError):  # a leader that no list of brokers has named yet
        return False
    return not getattr(error, "retriable", False) or _untrusted(error)


def _untrusted(error: BaseException) -> bool:
    # kafka-python keeps what TLS said as text alone.
    return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError) or (
        "CERTIFICATE_VERIFY_FAILED" in str(error)
    )


def _words(error: Exception) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
