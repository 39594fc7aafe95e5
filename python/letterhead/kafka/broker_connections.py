"""Connections to the brokers of a cluster, and requests with retries: :class:`BrokerConnections`.

kafka-python provides connections, TLS, SASL and the encoding of requests. Its consumer is not used, because it parses
record sets. The internal classes used instead are imported only here and in :mod:`letterhead.kafka.transport`. The
extra ``kafka`` limits the versions, and ``tests/kafka/test_topic.py`` checks the signatures.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from letterhead._context_managers import Closing
from letterhead._host_addresses import AddressInfo, look_up
from letterhead._optional_dependencies import how_to_install, install_hint
from letterhead.errors import ProtocolError
from letterhead.kafka.oauth import CredentialSource, Tokens
from letterhead.kafka.reachability import Reachability
from letterhead.kafka.remedies import authentication_remedy
from letterhead.kafka.settings import Settings
from letterhead.kafka.tls import ssl_context

try:
    from kafka import errors as kafka_errors
    from kafka.future import Future
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.metadata import CoordinatorType

    from letterhead.kafka.broker_errors import has_reason, is_final, time_limit_reason, translate_error
    from letterhead.kafka.responses import FindMismatch
    from letterhead.kafka.transport import DirectSockets, LargeTlsReads, OwnMechanism, ResponseFrames, SuppliedTokens
except ImportError as error:
    # Old versions of kafka-python lack these modules.
    version = "kafka-python 3.0.12 or later"
    raise ImportError(how_to_install("a topic of Kafka", version, "letterhead[kafka]")) from error

__all__ = ["Attempt", "BrokerConnections"]

Attempt = Callable[[float], Awaitable[Any]]
"""Function that sends the requests of a call before a deadline. It is called again after temporary errors."""

_BACKOFF = 0.1
_MAX_EXTRA_BYTES = 128 << 20
"""Number of bytes by which a response may exceed the requested size, because a broker sends at least one whole batch."""

_RECONNECT_MS = 1000
"""Maximum pause between attempts to connect to a broker, as in Java; a restarted broker is therefore used again soon."""

_SETUP_MS = 10_000
"""Time limit of a connection to one broker, after which the next one is tried."""


class BrokerConnections(Closing):
    """Connections to a cluster, and the thread that runs them.

    Each call ends within ``timeout`` seconds, including name lookup, connections, authentication and retries.
    """

    def __init__(self, settings: Settings) -> None:
        self.servers = settings.servers
        self.timeout = settings.timeout_ms / 1000
        self._settings = settings
        self._max_response_bytes = settings.fetch_bytes + _MAX_EXTRA_BYTES
        protocol = "SASL_SSL" if settings.protocol == "SSL" else "SASL_PLAINTEXT"
        remedy = (
            ""
            if settings.authentication
            else f": its port may expect authentication: set security.protocol to {protocol}"
        )
        self._reachability = Reachability(settings.servers, remedy)
        self._connections: dict[Any, Any] = {}
        self._tokens: CredentialSource | None = None
        options = self._options()
        self._looks_up = options.get("proxy_url") is None  # a proxy resolves names itself
        if self._looks_up:
            options["proxy_url"] = f"{DirectSockets.SCHEMES[0]}://"
        self._process = os.getpid()
        self._net = NetworkSelector(client_id=options["client_id"])
        self._manager = KafkaConnectionManager(self._net, **options)
        self._net.start()

    def _options(self) -> dict[str, Any]:
        """Return the settings as options for kafka-python."""
        settings = self._settings
        options: dict[str, Any] = {
            "bootstrap_servers": settings.servers.split(","),
            "security_protocol": settings.protocol,
            "receive_message_max_bytes": self._max_response_bytes,
            "client_id": "letterhead",
            "reconnect_backoff_max_ms": _RECONNECT_MS,
            # A third of the limit for each broker leaves time to try several brokers even if the limit is short.
            "socket_connection_setup_timeout_ms": max(1, min(_SETUP_MS, settings.timeout_ms // 3)),
        } | {name.replace(".", "_"): value for name, value in settings.options.items()}
        if settings.authentication is not None:
            options["sasl_mechanism"] = OwnMechanism.named(settings.authentication.mechanism)
            options["sasl_plain_username"] = settings.authentication.username
            options["sasl_plain_password"] = settings.authentication.password
            if settings.authentication.oauth is not None:
                tokens = Tokens(settings.authentication.oauth)
                self._tokens, options["sasl_oauth_token_provider"] = tokens, SuppliedTokens(tokens)
            elif settings.authentication.iam is not None:
                self._tokens = options["sasl_oauth_token_provider"] = settings.authentication.iam
            elif settings.authentication.mechanism == "GSSAPI":
                with install_hint("GSSAPI", "gssapi"):
                    import gssapi  # noqa: F401
                options["sasl_oauth_token_provider"] = settings.authentication.kerberos
        if settings.protocol.endswith("SSL"):
            context = options["ssl_context"] = ssl_context(settings.tls)
            if settings.tls.context is None:
                context.sslsocket_class = LargeTlsReads
        return options

    def close(self) -> None:
        """Close the connections and end the thread, except in a forked child."""
        if os.getpid() == self._process and not self._manager.closed:
            self._net.run(self._manager.close)
            self._net.close()

    # --- calls from another thread -----------------------------------------------------------------------------------

    def call(self, attempt: Attempt) -> Any:
        """Return the result of an attempt, with retries."""
        return self._run(self.retry, attempt)

    def begin(self, attempt: Attempt) -> Any:
        """Start a call in the background, and return a handle for :meth:`wait`."""
        return self._manager.call_soon(self.retry, attempt)

    def wait(self, pending: Any) -> Any:
        """Wait for a call that :meth:`begin` started."""
        return self._run(self._manager.wait_for, pending, None)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if os.getpid() != self._process:  # the thread of the connections does not exist after a fork
            raise RuntimeError("the connections were opened before a fork: open new ones in the new process")
        try:
            return self._net.run(function, *arguments)
        except kafka_errors.KafkaError as error:
            raise translate_error(error, self._settings) from error

    # --- in the thread of the connections ----------------------------------------------------------------------------

    async def retry(self, attempt: Attempt, deadline: float | None = None) -> Any:
        """Repeat an attempt after temporary errors, up to a deadline or for :attr:`timeout` seconds."""
        deadline = time.monotonic() + self.timeout if deadline is None else deadline
        reported: Exception | None = None
        while True:
            try:
                return await attempt(deadline)
            except kafka_errors.KafkaError as error:
                if is_final(error):
                    raise
                failure: Exception = error
            if reported is None or has_reason(failure):
                reported = failure
            self._prepare_retry()
            self._reachability.check(
                {f"{broker.host}:{broker.port}" for broker in self._manager.cluster.bootstrap_brokers()}
            )
            if time.monotonic() + _BACKOFF >= deadline:
                raise kafka_errors.KafkaTimeoutError(time_limit_reason(reported)) from failure
            await self._net.sleep(_BACKOFF)

    def _prepare_retry(self) -> None:
        """Discard cached state that an error may have invalidated."""

    def note_metadata(self, response: Any) -> None:
        """Note the brokers that a MetadataResponse names."""
        self._manager.cluster.update_metadata(response)

    def knows_broker(self, node: Any) -> bool:
        """Return whether the metadata lists a broker."""
        return self._manager.cluster.broker_metadata(node) is not None

    def add_coordinator(self, response: Any, group: str) -> Any:
        """Note the broker that a FindCoordinatorResponse names, and return its name for :meth:`send`."""
        return self._manager.cluster.add_coordinator(response, CoordinatorType.GROUP, group)

    async def send_to_any(self, request: Any, deadline: float, find_mismatch: FindMismatch) -> Any:
        """Send a request to brokers until one answers: known brokers first, then the bootstrap servers."""
        cluster = self._manager.cluster
        known, bootstrap = (
            random.sample(brokers, len(brokers)) for brokers in (cluster.brokers(), cluster.bootstrap_brokers())
        )
        failure: Exception = kafka_errors.NodeNotReadyError(self.servers)
        for broker in [*known, *bootstrap]:
            try:
                return await self.send(broker.node_id, request, deadline, find_mismatch)
            except kafka_errors.NodeNotReadyError:
                continue  # the broker's earlier error is reported instead
            except kafka_errors.KafkaError as error:
                if is_final(error):
                    raise
                failure = error
        raise failure

    async def send(self, node: Any, request: Any, deadline: float, find_mismatch: FindMismatch) -> Any:
        """Send a request to a broker. ``find_mismatch`` returns why a response does not answer the request."""
        broker = self._manager.cluster.broker_metadata(node)
        if broker is None:
            raise kafka_errors.UnknownBrokerIdError(node)
        endpoint = f"{broker.host}:{broker.port}"
        if self._tokens is not None and self._tokens.is_due:
            await self._renew_token(self._tokens, deadline)
        if self._looks_up and (node not in self._connections or self._connections[node].closed):
            await self._look_up(broker.host, broker.port, endpoint, deadline)
        connection = self._connection(node)
        try:
            setup = time.monotonic() + self._manager.socket_connection_setup_timeout_ms(node) / 1000
            await self._wait_for(connection.init_future, min(setup, deadline))
            self._reachability.note_connected(endpoint)
            response = await self._wait_for(connection.send_request(request), deadline)
            self._reachability.note_response(endpoint)
        except Exception as error:
            other = self._note_failure(error, connection, endpoint)
            if other is None:
                raise
            raise other from error
        mismatch = find_mismatch(response)
        if mismatch is not None:
            raise ProtocolError(f"{endpoint} {mismatch}")
        return response

    def _connection(self, node: Any) -> Any:
        # Metadata is refreshed by retry(), not by kafka-python.
        connection = self._connections[node] = self._manager.get_connection(node, refresh_metadata_on_err=False)
        if not isinstance(connection.data_received, ResponseFrames):
            connection.data_received = ResponseFrames(connection, self._max_response_bytes)
        return connection

    def _note_failure(self, error: Exception, connection: Any, endpoint: str) -> Exception | None:
        """Note why a broker did not answer; return a more specific error to raise instead, if there is one."""
        is_accepted = connection.init_future.succeeded()
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            connection.close(error)  # otherwise a late response could be taken for the next one
            silent: Exception = kafka_errors.KafkaTimeoutError(f"{endpoint} does not respond")
            return silent
        if isinstance(error, kafka_errors.KafkaProtocolError):
            if isinstance(error, kafka_errors.InvalidReceiveError) and not is_accepted:
                return None
            return ProtocolError(f"{endpoint} sent an invalid response: {error.args[0]}")
        if isinstance(error, kafka_errors.KafkaError):
            error.broker = endpoint  # translate_error() reads it
            if is_accepted and "disconnected" in str(error):
                self._reachability.note_dropped(endpoint)
            if "ECONNREFUSED" in str(error):
                self._reachability.note_failure(endpoint, "the connection was refused")
            elif "Handshake failed" in str(error) and not is_final(error):
                reason = "it ended the TLS handshake, so its port may expect another security.protocol"
                self._reachability.note_failure(endpoint, reason)
            return None
        # The error comes from Kerberos, or from an authentication response that kafka-python did not validate.
        connection.close()
        if type(error).__module__.partition(".")[0] == "gssapi":
            remedy = authentication_remedy("GSSAPI", "")
            return PermissionError(f"cannot authenticate by GSSAPI to {endpoint}: {error}; {remedy}")
        return ProtocolError(
            f"{endpoint} sent an invalid response to an authentication request ({type(error).__name__})"
        )

    async def _look_up(self, host: str, port: int, endpoint: str, deadline: float) -> None:
        lookup = Future()
        look_up(host, port, lambda addresses: self._resolve(lookup, addresses))
        addresses: list[AddressInfo] | Exception = await self._wait_for(lookup, deadline)
        if isinstance(addresses, Exception):
            cause = (addresses.strerror if isinstance(addresses, OSError) else None) or str(addresses)
            reason = f"its address is unknown ({cause})"
            self._reachability.note_failure(endpoint, reason, is_unknown=True)
            raise kafka_errors.KafkaConnectionError(f"{endpoint}: {reason}")
        DirectSockets.addresses[host, port] = addresses

    async def _renew_token(self, tokens: CredentialSource, deadline: float) -> None:
        # Requests to an identity provider block, so they run outside of the connections' thread.
        renewed = Future()

        def renew() -> None:
            try:
                tokens.current(deadline - time.monotonic())
            except Exception as error:
                self._resolve(renewed, error)
            else:
                self._resolve(renewed, None)

        threading.Thread(target=renew, name="letterhead-token", daemon=True).start()
        try:
            error = await self._wait_for(renewed, deadline)
        except kafka_errors.KafkaTimeoutError:
            mechanism = self._settings.authentication and self._settings.authentication.mechanism
            raise kafka_errors.KafkaTimeoutError(f"no token for {mechanism} in time") from None
        if error is not None:
            raise error

    def _resolve(self, future: Any, result: Any) -> None:
        """Set the result of a future from another thread."""
        with contextlib.suppress(RuntimeError):  # the client was closed meanwhile
            self._net.call_soon_threadsafe(lambda: future.success(result))

    async def _wait_for(self, future: Any, deadline: float) -> Any:
        return await self._manager.wait_for(future, max(1.0, 1000 * (deadline - time.monotonic())))
