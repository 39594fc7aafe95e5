"""The requests that read a topic: metadata, offsets, and record sets as they are stored.

kafka-python provides connections, TLS, SASL and the encoding of requests. Its consumer is not used, because it parses
record sets. The parts used instead are not a public interface, so they are used only here and in
:mod:`letterhead.kafka.transport`, in the versions that the extra ``kafka`` names, and ``tests/kafka/test_topic.py`` checks
their signatures.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from letterhead._context_managers import Closing
from letterhead._optional_dependencies import how_to_install, needed
from letterhead.errors import ProtocolError, TopicNotFoundError
from letterhead.host_addresses import AddressInfo, look_up
from letterhead.kafka.oauth import CredentialSource, Tokens
from letterhead.kafka.remedies import demands_certificate, login_remedy, tls_error
from letterhead.kafka.settings import Settings
from letterhead.kafka.tls import ssl_context
from letterhead.offsets.partition_log import TopicPartition

try:
    from kafka import errors as kafka_errors
    from kafka.future import Future
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
    from kafka.protocol.metadata import CoordinatorType, MetadataRequest

    from letterhead.kafka.responses import (
        ISOLATION,
        Fetched,
        Isolation,
        Wrong,
        check_code,
        fetched_response,
        wrong_fetch,
        wrong_metadata,
        wrong_offsets,
    )
    from letterhead.kafka.transport import DirectSockets, LargeTlsReads, LoginTokens, OwnMechanism, ResponseFrames
except ImportError as error:
    # An old version is installed, but lacks these modules.
    version = "kafka-python 3.0.12 or later"
    raise ImportError(how_to_install("reading a topic", version, "'letterhead[kafka]'")) from error

__all__ = ["EARLIEST_TIME", "LATEST_TIME", "DescribedTopic", "KafkaClient"]

_NO_TOPIC = (kafka_errors.UnknownTopicOrPartitionError.errno, kafka_errors.InvalidTopicError.errno)
_WITHOUT_REASON = (kafka_errors.NodeNotReadyError, kafka_errors.KafkaTimeoutError)
"""Errors without a cause; an earlier error is reported instead."""

_REJECTED = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)

LATEST_TIME, EARLIEST_TIME = -1, -2
"""Times that :meth:`KafkaClient.offsets` accepts beside milliseconds."""

_log = logging.getLogger(__name__)

_NO_SESSION = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}
_BACKOFF = 0.1
_MAX_EXTRA_BYTES = 128 << 20
"""Bytes that a response can have beyond the requested ones: a broker sends at least one whole batch."""

_SETUP_MS = 10_000
"""How long a connection to one broker may take, before the next one is tried."""

_TRIES = 5
"""How often each of the brokers is tried, if none has answered and their names are unknown or their ports closed."""

_LEADER_SECONDS = 30.0
"""How long a partition is read from its leader after a replica failed. Leaders name a replica until it has been out of
sync for ``replica.lag.time.max.ms``, which is 30 s by default."""

_UNKNOWN_SECONDS = 15.0
"""How long the address of a broker that the cluster names may be unknown. A cluster needs up to 9 s to replace a broker."""


class DescribedTopic(NamedTuple):
    """A topic as the brokers describe it."""

    name: str
    is_internal: bool
    partitions: list[TopicPartition]
    replicas: int  # the most that a partition has
    leaderless: list[TopicPartition]  # partitions that cannot be read at the moment


@dataclass
class _Unreachable:
    """A broker that has never answered, and the reason why it cannot be reached."""

    reason: str
    since: float
    tries: int = 0
    is_unknown: bool = False  # whether it has no address


class KafkaClient(Closing):
    """Connections to a cluster, and the thread that runs them.

    Each method ends within ``timeout`` seconds, with name lookup, connections, login and retries of temporary errors.
    """

    def __init__(self, settings: Settings) -> None:
        self.servers = settings.servers
        self._protocol = settings.protocol
        self._mechanism = settings.login.mechanism if settings.login is not None else None
        self.timeout = settings.timeout_ms / 1000
        self._fetch_bytes = settings.fetch_bytes
        self._max_response_bytes = settings.fetch_bytes + _MAX_EXTRA_BYTES
        self._connections: dict[Any, Any] = {}
        self._unreachable: dict[str, _Unreachable] = {}
        self._answered: set[str] = set()  # brokers that have accepted a connection
        self._served: set[str] = set()  # brokers that have answered a request
        self._dropped: dict[str, int] = {}  # connections that brokers ended before
        self._leaders: dict[TopicPartition, int] = {}
        self._rack = settings.rack
        self._replicas: dict[TopicPartition, int] = {}  # brokers that were read from last, other than the leaders
        self._leader_only: dict[TopicPartition, float] = {}  # until when no replica is read, because one failed
        self._epochs: dict[TopicPartition, int] = {}  # the newest known ones, also of partitions without a known leader
        self._topic_ids: dict[str, Any] = {}
        options: dict[str, Any] = {
            "bootstrap_servers": settings.servers.split(","),
            "security_protocol": settings.protocol,
            "receive_message_max_bytes": self._max_response_bytes,
            "client_id": "letterhead",
            # Several brokers are tried within a short limit, too.
            "socket_connection_setup_timeout_ms": max(1, min(_SETUP_MS, settings.timeout_ms // 3)),
        } | {name.replace(".", "_"): value for name, value in settings.options.items()}
        self._tokens: CredentialSource | None = None
        if settings.login is not None:
            options["sasl_mechanism"] = OwnMechanism.named(settings.login.mechanism)
            options["sasl_plain_username"] = settings.login.username
            options["sasl_plain_password"] = settings.login.password
            if settings.login.oauth is not None:
                tokens = Tokens(settings.login.oauth)
                self._tokens, options["sasl_oauth_token_provider"] = tokens, LoginTokens(tokens)
            elif settings.login.iam is not None:
                self._tokens = options["sasl_oauth_token_provider"] = settings.login.iam
            elif settings.login.mechanism == "GSSAPI":
                with needed("GSSAPI", "gssapi"):
                    import gssapi  # noqa: F401
                options["sasl_oauth_token_provider"] = settings.login.kerberos
        self._looks_up = options.get("proxy_url") is None  # otherwise a proxy knows the addresses
        if self._looks_up:
            options["proxy_url"] = f"{DirectSockets.SCHEMES[0]}://"
        if settings.protocol.endswith("SSL"):
            context = options["ssl_context"] = ssl_context(settings.tls)
            if settings.tls.context is None:
                context.sslsocket_class = LargeTlsReads
        self._process = os.getpid()
        self._net = NetworkSelector(client_id=options["client_id"])
        self._manager = KafkaConnectionManager(self._net, **options)
        self._net.start()

    def close(self) -> None:
        """Close the connections and end the thread, except in a forked child."""
        if os.getpid() == self._process and not self._manager.closed:
            self._net.run(self._manager.close)
            self._net.close()

    def topics(self) -> list[str]:
        """Return the names of all visible topics, except Kafka's internal ones."""
        return [topic.name for topic in self.described_topics() if not topic.is_internal]

    def described_topics(self) -> list[DescribedTopic]:
        """Return all visible topics in the order of their names."""
        answer = self._run(self._metadata, None)
        topics = sorted((topic for topic in answer.topics if not topic.error_code), key=lambda topic: str(topic.name))
        return [
            DescribedTopic(
                topic.name,
                topic.is_internal,
                [TopicPartition(topic.name, partition.partition_index) for partition in topic.partitions],
                max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
                [
                    TopicPartition(topic.name, partition.partition_index)
                    for partition in topic.partitions
                    if partition.leader_id < 0
                ],
            )
            for topic in topics
        ]

    def brokers(self) -> list[int]:
        """Return the numbers of all brokers."""
        answer = self._run(self._metadata, [])
        return sorted(broker.node_id for broker in answer.brokers)

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of topics, in order; raise TopicNotFoundError if one does not exist."""
        names = list(topics)
        ordered = sorted(self._run(self._metadata, names).topics, key=lambda topic: names.index(topic.name))
        return [TopicPartition(topic.name, number) for topic in ordered
                for number in sorted(partition.partition_index for partition in topic.partitions)]  # fmt: skip

    def offsets(self, times: Mapping[TopicPartition, int], isolation: Isolation) -> dict[TopicPartition, int]:
        """Return, by partition, the offset of the first record that is not older than a time, or -1 if all are older.

        The result has the order of ``times``. A time is in milliseconds since 1970, :data:`EARLIEST_TIME` or
        :data:`LATEST_TIME`; with ``"read_committed"`` the latest is the first offset of the oldest open transaction.
        """
        offsets: dict[TopicPartition, int] = {}

        async def ask(until: float) -> None:
            by_leader: dict[int, list[TopicPartition]] = {}
            for place in times:
                if place not in offsets:
                    by_leader.setdefault(await self._leader(place, until), []).append(place)
            for leader, places in by_leader.items():
                topics = [
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                                partition_index=place.partition,
                                current_leader_epoch=self._epochs.get(place, -1),
                                timestamp=times[place],
                            )
                            for place in places
                            if place.topic == topic
                        ],
                    )
                    for topic in dict.fromkeys(place.topic for place in places)
                ]
                request = ListOffsetsRequest(
                    replica_id=-1, isolation_level=ISOLATION[isolation], topics=topics, min_version=2, max_version=7
                )
                answer = await self.ask(leader, request, until, partial(wrong_offsets, places))
                for topic in answer.topics:
                    for partition in topic.partitions:
                        check_code(partition.error_code, TopicPartition(topic.name, partition.partition_index))
                        offsets[TopicPartition(topic.name, partition.partition_index)] = partition.offset

        self.call(ask)
        return {place: offsets[place] for place in times}

    def fetch(
        self, place: TopicPartition, offset: int, isolation: Isolation, *, last_epoch: int = -1, wait_ms: int = 500
    ) -> Any:
        """Start a fetch in the background, and return a handle for :meth:`fetched`.

        The broker waits up to ``wait_ms`` for a record. ``last_epoch`` is the leader epoch of the record before
        ``offset``, or -1. With it, brokers since Kafka 2.7 compare their log with the log of the leader that sent the record.
        """

        async def request(node: int, rack: str, until: float) -> Fetched:
            partition = FetchRequest.FetchTopic.FetchPartition(
                partition=place.partition,
                current_leader_epoch=self._epochs.get(place, -1),
                fetch_offset=offset,
                last_fetched_epoch=last_epoch,
                log_start_offset=-1,
                partition_max_bytes=self._fetch_bytes,
            )
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=min(wait_ms, int(500 * self.timeout)),  # half of the time limit
                min_bytes=1,
                max_bytes=self._fetch_bytes,
                isolation_level=ISOLATION[isolation],
                topics=[FetchRequest.FetchTopic(topic=place.topic, partitions=[partition])],
                rack_id=rack,
                # From version 13 on, topics are named by ids instead.
                min_version=4,
                max_version=12,
                **_NO_SESSION,
            )
            answer = await self.ask(node, request, until, partial(wrong_fetch, place, last_epoch))
            return fetched_response(answer, place, isolation)

        async def ask(until: float) -> Fetched:
            leader = await self._leader(place, until)
            if not self._rack or time.monotonic() < self._leader_only.get(place, 0.0):
                return await request(leader, "", until)
            replica = self._replicas.pop(place, -1)
            if replica < 0:
                fetched = await request(leader, self._rack, until)
                replica = fetched.replica
                if replica < 0 or replica == leader:
                    return fetched
                if self._manager.cluster.broker_metadata(replica) is None:  # it was away when metadata was requested
                    await self._metadata([place.topic], until)
            try:
                fetched = await request(replica, self._rack, min(until, time.monotonic() + self.timeout / 3))
            except kafka_errors.KafkaError as error:
                if _is_final(error):
                    raise
                _log.warning(
                    "%s: the replica at broker %s cannot be read (%s); reading from the leader for %g s",
                    place, replica, type(error).__name__, _LEADER_SECONDS,
                )  # fmt: skip
                self._leader_only[place] = time.monotonic() + _LEADER_SECONDS
            else:
                if fetched.records:
                    self._replicas[place] = replica
                    return fetched
            # Only the leader knows whether there are more records, whether the offset exists, and what an election removed.
            return await request(leader, "", until)

        return self.begin(ask)

    def fetched(self, begun: Any) -> Fetched:
        """Wait for the response to a fetch."""
        response: Fetched = self.wait(begun)
        return response

    def call(self, ask: Callable[[float], Awaitable[Any]]) -> Any:
        """Return the result of ``ask``, which gets its time limit and is called again after temporary errors."""
        return self._run(self._retry, ask)

    def begin(self, ask: Callable[[float], Awaitable[Any]]) -> Any:
        """Start a call in the background, and return a handle for :meth:`wait`."""
        return self._manager.call_soon(self._retry, ask)

    def wait(self, begun: Any) -> Any:
        """Wait for a call that :meth:`begin` started."""
        return self._run(self._manager.wait_for, begun, None)

    def add_coordinator(self, answer: Any, group: str) -> Any:
        """Note the broker that a FindCoordinatorResponse names, and return its name for :meth:`ask`."""
        return self._manager.cluster.add_coordinator(answer, CoordinatorType.GROUP, group)

    def _run(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        if os.getpid() != self._process:  # its thread does not exist in this process
            raise RuntimeError("the connections were opened before a fork: open new ones in the new process")
        try:
            return self._net.run(ask, *arguments)
        except kafka_errors.KafkaError as error:
            raise self._translate_error(error) from error

    async def _metadata(self, topics: list[str] | None, until: float | None = None) -> Any:
        requested = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]

        async def ask(until: float) -> Any:
            request = MetadataRequest(
                topics=requested,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
                max_version=12,
            )
            answer = await self.ask_any(request, until, partial(wrong_metadata, topics))
            for topic in answer.topics:
                if topics is not None and topic.error_code in _NO_TOPIC:
                    raise TopicNotFoundError(
                        f"there is no topic {topic.name!r} at {self.servers}: check its name, and whether the user may "
                        "describe it"
                    )
                if topics is not None:
                    check_code(topic.error_code, topic.name)
            self._manager.cluster.update_metadata(answer)
            self._note_leaders(answer)
            return answer

        return await self._retry(ask, until)

    def _note_leaders(self, answer: Any) -> None:
        for topic in answer.topics:
            topic_id = topic.topic_id if answer.API_VERSION >= 10 else None
            if self._topic_ids.setdefault(topic.name, topic_id) != topic_id:  # a new topic, whose epochs begin at 0
                self._topic_ids[topic.name] = topic_id
                self._epochs = {place: epoch for place, epoch in self._epochs.items() if place.topic != topic.name}
            for partition in topic.partitions:
                place = TopicPartition(topic.name, partition.partition_index)
                # Before version 9 the epoch can be an old one (KAFKA-9212).
                epoch = partition.leader_epoch if answer.API_VERSION >= 9 else -1
                # A broker that has not heard of the newest election names the leader before it.
                stale = 0 <= epoch < self._epochs.get(place, -1)
                self._leaders[place] = -1 if stale else partition.leader_id
                self._epochs[place] = max(epoch, self._epochs.get(place, -1))

    async def _leader(self, place: TopicPartition, until: float) -> int:
        if self._leaders.get(place, -1) < 0:
            answer = await self._metadata([place.topic], until)
            if place.partition not in (
                partition.partition_index for topic in answer.topics for partition in topic.partitions
            ):
                raise ValueError(f"topic {place.topic!r} has no partition {place.partition}")
            if self._leaders[place] < 0:
                raise kafka_errors.LeaderNotAvailableError(str(place))
        return self._leaders[place]

    async def ask_any(self, request: Any, until: float, wrong: Wrong) -> Any:
        """Send a request to brokers until one answers: known ones first, then the bootstrap servers."""
        cluster = self._manager.cluster
        known, named = (
            random.sample(brokers, len(brokers)) for brokers in (cluster.brokers(), cluster.bootstrap_brokers())
        )
        failure: Exception = kafka_errors.NodeNotReadyError(self.servers)
        for broker in [*known, *named]:
            try:
                return await self.ask(broker.node_id, request, until, wrong)
            except kafka_errors.NodeNotReadyError:
                continue  # its earlier error is reported instead
            except kafka_errors.KafkaError as error:
                if _is_final(error):
                    raise
                failure = error
        raise failure

    async def ask(self, node: Any, request: Any, until: float, wrong: Wrong) -> Any:
        """Send a request to a broker. ``wrong`` returns why a response does not answer the request."""
        broker = self._manager.cluster.broker_metadata(node)
        if broker is None:
            raise kafka_errors.UnknownBrokerIdError(node)
        place = f"{broker.host}:{broker.port}"
        if self._tokens is not None and self._tokens.is_due:
            await self._renew_token(self._tokens, until)
        if self._looks_up and (node not in self._connections or self._connections[node].closed):
            await self._look_up(broker.host, broker.port, place, until)
        # Metadata is refreshed by _retry, not by kafka-python.
        connection = self._connections[node] = self._manager.get_connection(node, refresh_metadata_on_err=False)
        if not isinstance(connection.data_received, ResponseFrames):
            connection.data_received = ResponseFrames(connection, self._max_response_bytes)
        accepted = False
        try:
            setup = time.monotonic() + self._manager.socket_connection_setup_timeout_ms(node) / 1000
            await self._wait_for(connection.init_future, min(setup, until))
            accepted = True
            self._answered.add(place)
            self._unreachable.pop(place, None)
            answer = await self._wait_for(connection.send_request(request), until)
            self._served.add(place)
        except kafka_errors.KafkaTimeoutError as error:
            connection.close(error)  # a response that comes later is to an earlier request
            raise kafka_errors.KafkaTimeoutError(f"{place} does not respond") from error
        except kafka_errors.KafkaProtocolError as error:
            if isinstance(error, kafka_errors.InvalidReceiveError) and not accepted:
                raise
            raise ProtocolError(f"{place} sent an invalid response: {error.args[0]}") from error
        except kafka_errors.KafkaError as error:
            error.broker = place  # _translate_error() reads it
            if accepted and "disconnected" in str(error):
                self._note_dropped(place)
            if "ECONNREFUSED" in str(error):
                self._note_unreachable(place, "the connection was refused")
            elif "Handshake failed" in str(error) and not _is_final(error):
                self._note_unreachable(
                    place, "it ended the TLS handshake, so its port may expect another security.protocol"
                )
            raise
        except Exception as error:  # of Kerberos, or a response to the login that kafka-python does not check
            connection.close()
            if type(error).__module__.partition(".")[0] == "gssapi":
                raise PermissionError(
                    f"no login by GSSAPI to {place}: {error}; {login_remedy('GSSAPI', '')}"
                ) from error
            raise ProtocolError(f"{place} sent an invalid response to the login ({type(error).__name__})") from error
        why = wrong(answer)
        if why is not None:
            raise ProtocolError(f"{place} {why}")
        return answer

    def _note_unreachable(self, place: str, reason: str, *, is_unknown: bool = False) -> None:
        if place not in self._answered:
            failure = self._unreachable.setdefault(place, _Unreachable(reason, time.monotonic()))
            failure.reason, failure.is_unknown = reason, is_unknown
            failure.tries += 1

    def _note_dropped(self, place: str) -> None:
        """Count the connections that a broker has ended before it answered a request; raise ConnectionError if it always does."""
        if place in self._served:
            return
        self._dropped[place] = self._dropped.get(place, 0) + 1
        if self._dropped[place] >= _TRIES:
            protocol = "SASL_SSL" if self._protocol == "SSL" else "SASL_PLAINTEXT"
            remedy = "" if self._mechanism else f": its port may expect a login: set security.protocol to {protocol}"
            raise ConnectionError(f"{place} ends connections at the first request{remedy}")

    def _check_reachable(self) -> None:
        """Raise ConnectionError if more tries are unlikely to reach a broker."""
        failures = self._unreachable.items()
        reasons = "; ".join(f"{place}: {failure.reason}" for place, failure in failures)
        bootstrap = {f"{broker.host}:{broker.port}" for broker in self._manager.cluster.bootstrap_brokers()}
        if not self._answered and all(
            place in self._unreachable and self._unreachable[place].tries >= _TRIES for place in bootstrap
        ):
            raise ConnectionError(
                f"no broker can be reached ({reasons}) after {_TRIES} tries: check bootstrap.servers, and whether the "
                "brokers run"
            )
        for place, failure in failures:
            if self._answered and failure.is_unknown and time.monotonic() - failure.since >= _UNKNOWN_SECONDS:
                raise ConnectionError(
                    f"{place} cannot be reached: {failure.reason}; {self.servers} names this broker: check its "
                    "advertised.listeners"
                )

    async def _look_up(self, host: str, port: int, place: str, until: float) -> None:
        addresses = Future()

        def answer(value: list[AddressInfo] | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the client was closed meanwhile
                self._net.call_soon_threadsafe(lambda: addresses.success(value))

        look_up(host, port, answer)
        value = await self._wait_for(addresses, until)
        if isinstance(value, Exception):
            reason = (value.strerror if isinstance(value, OSError) else None) or str(value)
            self._note_unreachable(place, f"its address is unknown ({reason})", is_unknown=True)
            raise kafka_errors.KafkaConnectionError(f"{place}: its address is unknown ({reason})")
        DirectSockets.addresses[host, port] = value

    async def _renew_token(self, tokens: CredentialSource, until: float) -> None:
        # In a thread, because requests to an identity provider would stop the thread of the connections.
        renewed = Future()

        def pass_on(error: Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the client was closed meanwhile
                self._net.call_soon_threadsafe(lambda: renewed.success(error))

        def renew() -> None:
            try:
                tokens.current(until - time.monotonic())
            except Exception as error:
                pass_on(error)
            else:
                pass_on(None)

        threading.Thread(target=renew, name="letterhead-token", daemon=True).start()
        try:
            error = await self._wait_for(renewed, until)
        except kafka_errors.KafkaTimeoutError:
            raise kafka_errors.KafkaTimeoutError(f"no token for {self._mechanism} in time") from None
        if error is not None:
            raise error

    async def _wait_for(self, future: Any, until: float) -> Any:
        return await self._manager.wait_for(future, max(1.0, 1000 * (until - time.monotonic())))

    async def _retry(self, ask: Callable[[float], Awaitable[Any]], until: float | None = None) -> Any:
        """Ask again after temporary errors, until ``until`` or for :attr:`timeout` seconds."""
        until = time.monotonic() + self.timeout if until is None else until
        failure: Exception | None = None
        while True:
            try:
                return await ask(until)
            except kafka_errors.KafkaError as error:
                if _is_final(error):
                    raise
                if failure is None or not isinstance(error, _WITHOUT_REASON):
                    failure = error
                self._leaders.clear()
                self._check_reachable()
                if time.monotonic() + _BACKOFF >= until:
                    if isinstance(failure, kafka_errors.RequestTimedOutError):
                        reason = "a request timed out"
                    else:
                        reason = (
                            failure.args[0] if isinstance(failure, kafka_errors.KafkaTimeoutError) else str(failure)
                        )
                    raise kafka_errors.KafkaTimeoutError(reason) from error
            await self._net.sleep(_BACKOFF)

    def _translate_error(self, error: Exception) -> Exception:
        """Return the error to raise: what went wrong and what to do, without the value of a setting."""
        # The broker of a failed connection or login, which the method that connects has added.
        servers = getattr(error, "broker", self.servers)
        reason = str(error.args[0]) if error.args else type(error).__name__
        if isinstance(error, kafka_errors.IllegalSaslStateError):
            protocol = self._protocol.removeprefix("SASL_")
            return ConnectionError(
                f"{servers} takes no login: set security.protocol to {protocol}, or connect to a port that has SASL"
            )
        if isinstance(error, _REJECTED):
            how = f" by {self._mechanism}" if self._mechanism else ""
            if isinstance(error, kafka_errors.UnsupportedSaslMechanismError):
                reason = f"{self._mechanism} is not among the enabled mechanisms"
            reason = reason.removeprefix("SaslAuthenticationFailedError: ")
            remedy = login_remedy(self._mechanism, reason)
            return PermissionError(f"{servers} rejected the login{how}: {reason}; {remedy}")
        if isinstance(error, kafka_errors.AuthorizationError):
            return PermissionError(f"{servers} does not allow it: {reason}; the user needs an ACL for it")
        if _is_untrusted(error) or demands_certificate(reason):
            return tls_error(servers, reason)
        if isinstance(error, kafka_errors.InvalidReceiveError):
            return ConnectionError(
                f"{servers} does not speak Kafka's protocol over {self._protocol}: set security.protocol to the protocol of the "
                f"port ({reason})"
            )
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            return TimeoutError(
                f"no answer from {servers} in {self.timeout:g} s: {reason} (security protocol {self._protocol})"
            )
        return RuntimeError(f"{servers}: {reason}")


def _is_final(error: Exception) -> bool:
    """Return whether a retry would fail in the same way."""
    if isinstance(error, kafka_errors.UnknownBrokerIdError):  # the metadata does not list a new leader yet
        return False
    return not getattr(error, "retriable", False) or _is_untrusted(error) or demands_certificate(str(error))


def _is_untrusted(error: BaseException) -> bool:
    # kafka-python keeps the TLS error as text only.
    return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError) or (
        "CERTIFICATE_VERIFY_FAILED" in str(error)
    )
