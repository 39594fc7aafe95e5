"""Authentication and its failures, with every way to pass them: readers, writers, the command line; Spark has a file of its own."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import letterhead as lh
from letterhead.cli import main
from letterhead.errors import TopicNotFoundError
from letterhead.kafka.oauth import OAuthSettings, Tokens
from letterhead.kafka.transport import LargeReads
from tests.helpers.terminal import answer
from tests.kafka import identity, secured
from tests.kafka.identity import Identity
from tests.kafka.written import create_with

pytestmark = pytest.mark.broker

TABLE = pa.table({"key": ["k"], "value": [b"v"]})
SECRET = "never-to-be-seen"


def read(settings: Any, **options: Any) -> pa.Table:
    with lh.read.topic("orders", settings=settings, **{"timeout_ms": 30_000, **options}) as reader:
        return reader.read_all()


def written_and_read(settings: Any, **options: Any) -> None:
    """Append a row, and read it."""
    before = len(read(settings, **options))
    assert lh.write.topic(TABLE, "orders", settings=settings, **options).rows == 1
    assert len(read(settings, **options)) == before + 1


# OAUTHBEARER ----------------------------------------------------------------------------------------------------------


def bearer(address: str, provider: Identity, **more: str) -> dict[str, str]:
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(provider.authority),
        "sasl.mechanism": "OAUTHBEARER",
    }
    return settings | more


def credentials(provider: Identity, scope: str = "kafka") -> dict[str, str]:
    return {
        "sasl.oauthbearer.token.endpoint.url": provider.endpoint,
        "sasl.oauthbearer.client.credentials.client.id": "letters",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.scope": scope,
        "https.ca.location": str(provider.authority),
    }


def jaas(provider: Identity) -> dict[str, str]:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    return {
        "sasl.oauthbearer.token.endpoint.url": provider.endpoint,
        "sasl.login.callback.handler.class": handler,
        "sasl.jaas.config": f'{module} required clientId="letters" clientSecret="{SECRET}" scope="kafka" '
        f'ssl.truststore.type="PEM" ssl.truststore.location="{provider.authority}" extension_logicalCluster="lkc-1";',
    }


@pytest.mark.parametrize("how", [credentials, jaas])
def test_client_credentials_open_topic(oauth_broker, provider, how):
    written_and_read(bearer(oauth_broker, provider, **how(provider)))


def test_token_from_function_file_or_setting_opens_topic(oauth_broker, provider, tmp_path):
    tokens = iter([provider.token(), provider.token(), provider.token()])
    written_and_read(bearer(oauth_broker, provider), token_provider=lambda: next(tokens))
    (tmp_path / "token").write_text(f"{provider.token()}\n")
    written_and_read(
        bearer(oauth_broker, provider, **{"sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/token"})
    )
    written_and_read(bearer(oauth_broker, provider, **{"sasl.oauthbearer.token": f"${{file:{tmp_path}/token}}"}))


@pytest.mark.slow
def test_reader_renews_expired_token(oauth_broker, provider):
    """The broker ends a connection whose token has expired, unless the client logs in again."""
    settings = bearer(oauth_broker, provider, **credentials(provider))
    lh.write.topic(pa.concat_tables([TABLE] * 10), "orders", settings=settings)
    with lh.read.topic("orders", settings=settings, fetch_bytes=1, batch_bytes=1, timeout_ms=30_000) as reader:
        begun, rows = time.monotonic(), 0
        for batch in reader:
            rows += len(batch)
            if time.monotonic() - begun < 2.5 * identity.LIFETIME:
                time.sleep(5)
    assert rows == len(read(settings))
    assert time.monotonic() - begun > 1.5 * identity.LIFETIME


def test_broker_rejects_token_for_another_audience(oauth_broker, provider):
    settings = bearer(oauth_broker, provider, **credentials(provider, "others"))
    with pytest.raises(
        PermissionError,
        match=f"^{oauth_broker} rejected the authentication by OAUTHBEARER: .*; check audience, scope and expiry",
    ):
        read(settings)
    with pytest.raises(PermissionError, match=r"rejected the authentication by OAUTHBEARER: .*; check audience"):
        lh.write.topic(TABLE, "orders", settings=settings, timeout_ms=30_000)


def test_expired_token_raises_before_connecting(oauth_broker, provider):
    token = provider.token()
    time.sleep(identity.LIFETIME)
    for call in (read, lambda settings: lh.write.topic(TABLE, "orders", settings=settings)):
        with pytest.raises(PermissionError, match=r"^the token of sasl\.oauthbearer\.token has expired$"):
            call(bearer(oauth_broker, provider, **{"sasl.oauthbearer.token": token}))


def test_provider_with_unknown_authority_is_not_trusted(oauth_broker, provider):
    settings = bearer(oauth_broker, provider, **credentials(provider))
    del settings["https.ca.location"]
    with pytest.raises(
        ConnectionError, match=rf"certificate of {provider.endpoint} is not trusted: .*; name .* in https\.ca\.location"
    ):
        read(settings)


def test_token_provider_errors_are_raised(oauth_broker, provider):
    def fails() -> str:
        raise LookupError("no vault")

    with pytest.raises(LookupError, match="no vault"):
        read(bearer(oauth_broker, provider), token_provider=fails)
    with pytest.raises(TypeError, match="token_provider must return the token as str, not bytes"):
        read(bearer(oauth_broker, provider), token_provider=lambda: b"token")
    with pytest.raises(ValueError, match="the token of token_provider is empty, or has blanks"):
        read(bearer(oauth_broker, provider), token_provider=lambda: "a\x01auth=b")


class Answers(BaseHTTPRequestHandler):
    """Answers as an identity provider that has something to object to, which the real one here never has."""

    answers: list[tuple[int, bytes]]
    requests: list[str]
    forms: list[bytes]

    def do_POST(self) -> None:
        self.requests.append(self.headers["Authorization"])
        self.forms.append(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def answering() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), type("Own", (Answers,), {"answers": [], "requests": [], "forms": []}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def tokens_of(server: Any, **more: Any) -> Tokens:
    endpoint = f"http://127.0.0.1:{server.server_port}/token"
    return Tokens(OAuthSettings(endpoint=endpoint, client_id="letters", client_secret=SECRET, **more))


NESTED = base64.urlsafe_b64encode(b"[" * 100_000)


def expires_at(text: str) -> bytes:
    """Return the response with a JSON web token that expires at a time."""
    return b'{"access_token": "a.' + base64.urlsafe_b64encode(f'{{"exp": {text}}}'.encode()) + b'.c"}'


GRANTED = (200, json.dumps({"access_token": "opaque", "expires_in": 60}).encode())


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        (
            [(401, b'{"error": "invalid_client"}')],
            PermissionError,
            r"rejected the client \(HTTP 401, invalid_client\): check client id, client secret and scope",
        ),
        ([(400, SECRET.encode())], PermissionError, r"rejected the client \(HTTP 400\)"),
        ([(302, b"")], ConnectionError, "no token from .*: HTTP 302; check sasl.oauthbearer.token.endpoint.url"),
        ([(503, b"")] * 3, ConnectionError, "no token from .*: HTTP 503"),
        ([(200, SECRET.encode())], ConnectionError, "sent no access_token"),
        ([(200, b'{"access_token": 7}')], ConnectionError, "must return the token as str, not int"),
        ([(200, b'{"access_token": "a", "expires_in": -1}')], None, None),
        ([(200, b'{"access_token": "a", "expires_in": 1' + b"0" * 400 + b"}")], None, None),
        ([(200, b'{"access_token": "a", "expires_in": Infinity}')], None, None),
        ([(200, expires_at("1" + "0" * 400))], None, None),
        ([(200, expires_at("Infinity"))], None, None),
        ([(200, expires_at('"text"'))], None, None),
        *(([(200, expires_at(exp))], ConnectionError, "has expired") for exp in ("-1" + "0" * 400, "NaN", "-Infinity")),
        ([(200, b"[" * 100_000)], ConnectionError, "sent no access_token"),
        ([(400, b"[" * 100_000)], PermissionError, r"rejected the client \(HTTP 400\)"),
        ([(200, b'{"access_token": "a.' + NESTED + b'.c"}')], None, None),
        ([(503, b""), GRANTED], None, None),
        ([(429, b""), GRANTED], None, None),
        ([(451, b"")], ConnectionError, "no token from .*: HTTP 451"),
    ],
)
def test_token_provider_responses_are_parsed_or_rejected(answering, answers, error, message):
    answering.RequestHandlerClass.answers[:] = answers
    if error is None:
        assert tokens_of(answering).current().text
    else:
        with pytest.raises(error, match=message) as raised:
            tokens_of(answering).current()
        assert SECRET not in str(raised.value)
        assert raised.value.__cause__ is None
    # Nothing was sent to the place of a redirection.
    assert len(answering.RequestHandlerClass.requests) == len(answers)


@pytest.mark.parametrize("part", ["status", "headers", "body"])
@pytest.mark.parametrize("status", [200, 401, 503])
@pytest.mark.parametrize("through_a_proxy", [False, True])
def test_response_sent_byte_by_byte_times_out(status, part, through_a_proxy, monkeypatch):
    whole = f"HTTP/1.1 {status} OK\r\nContent-Length: 40\r\n\r\n".encode() + b" " * 39
    sent_at_once = {"status": 0, "headers": 17, "body": 41}[part]
    stopped = threading.Event()

    def respond(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(whole[:sent_at_once])
            for byte in itertools.chain(whole[sent_at_once:], itertools.repeat(32)):
                if stopped.wait(0.05):
                    break
                connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: respond(server.accept()[0]), daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        endpoint = "https://idp.test/token" if through_a_proxy else f"{address}/token"
        if through_a_proxy:
            monkeypatch.setenv("https_proxy", address)
        tokens = Tokens(OAuthSettings(endpoint=endpoint, client_id="letters", client_secret=SECRET))
        threads, start = threading.active_count(), time.monotonic()
        # The status 401 alone, if it arrives, tells that the client is rejected.
        errors = (TimeoutError, PermissionError) if status == 401 else TimeoutError
        with pytest.raises(errors, match=r"rejected the client|no token from .* in time"):
            tokens.current(1.0)
        assert 0.9 < time.monotonic() - start < 5
        stopped.set()
    # A thread that has been told to end takes a moment.
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads


def test_error_with_unreadable_body_keeps_its_status():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            with server.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n")

        threading.Thread(target=respond, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        with pytest.raises(PermissionError, match=r"rejected the client \(HTTP 401\)"):
            Tokens(OAuthSettings(endpoint=endpoint, client_id="letters", client_secret=SECRET)).current()


def test_plaintext_secret_warns():
    settings = {"client_id": "letters", "client_secret": SECRET}
    with pytest.warns(UserWarning, match="client id and secret are sent in clear text: use https:") as warned:
        OAuthSettings(endpoint="http://idp.test/token", **settings)
    assert SECRET not in str(warned[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OAuthSettings(endpoint="https://idp.test/token", **settings)
        OAuthSettings(endpoint="http://localhost:9/token", **settings)


def test_token_is_reused_while_fresh_and_kept_if_renewal_fails(answering):
    handler = answering.RequestHandlerClass
    handler.answers[:] = [GRANTED, (401, b""), GRANTED]
    tokens = tokens_of(answering)
    first = tokens.current()
    assert tokens.current() is first
    assert len(handler.requests) == 1
    tokens._due = 0.0
    assert tokens.current() is first  # the provider has an outage, but the token is valid
    assert len(handler.requests) == 2
    assert not tokens.is_due


def test_token_request_includes_scope_if_set(answering):
    handler = answering.RequestHandlerClass
    handler.answers[:] = [GRANTED, GRANTED]
    tokens_of(answering, scope="orders read").current()
    tokens_of(answering).current()
    assert handler.forms == [b"grant_type=client_credentials&scope=orders+read", b"grant_type=client_credentials"]


def test_id_and_secret_are_encoded_on_request(answering):
    handler = answering.RequestHandlerClass
    handler.answers[:] = [GRANTED]
    tokens_of(answering, url_encodes=True).current()
    assert handler.requests == ["Basic bGV0dGVyczpuZXZlci10by1iZS1zZWVu"]


# Passwords, and failures ----------------------------------------------------------------------------------------------


def password(safe: secured.Secured, **more: str) -> dict[str, str]:
    settings = {
        "bootstrap.servers": safe.secure,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(safe.authority),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": secured.USER,
        "sasl.password": secured.PASSWORD,
    }
    return settings | more


def failures(settings: dict[str, str], error: type[Exception], message: str, **options: Any) -> None:
    """Check that reading and writing fail before their time limit, which would be another error, and without a secret."""
    options = {"timeout_ms": 300_000, **options}
    for call in (read, lambda settings, **options: lh.write.topic(TABLE, "orders", settings=settings, **options)):
        with pytest.raises(error, match=message) as raised:
            call(settings, **options)
        assert SECRET not in str(raised.value)


def test_property_file_refers_to_password(safe, tmp_path):
    (tmp_path / "password").write_text(secured.PASSWORD)
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={safe.secure}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={safe.authority}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'  username="{secured.USER}" password="${{file:{tmp_path}/password}}";\n'
    )
    written_and_read(file)


def test_wrong_password_is_rejected_with_remedy(safe):
    failures(
        password(safe, **{"sasl.password": SECRET}),
        PermissionError,
        f"^{safe.secure} rejected the authentication by SCRAM-SHA-512: .*; check user name and password in sasl",
    )


@pytest.fixture
def counted(request) -> Iterator[Any]:
    """Return a proxy of an address that counts its connections."""
    servers = []

    def proxy(address: str) -> tuple[str, list[object]]:
        host, port = address.split(":")
        connections: list[object] = []

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                connections.append(self)
                with socket.create_connection((host, int(port))) as other:
                    back = threading.Thread(target=pump, args=(other, self.request), daemon=True)
                    back.start()
                    pump(self.request, other)
                    back.join(10)

        server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"127.0.0.1:{server.server_address[1]}", connections

    yield proxy
    for server in servers:
        server.shutdown()
        server.server_close()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on bytes until the connection ends, and its end."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_first_rejection_of_password_is_reported(safe, counted, protocol, mechanism):
    for _ in range(5):
        address, connections = counted(safe.open if protocol == "SASL_PLAINTEXT" else safe.secure)
        settings = password(safe, **{"security.protocol": protocol, "sasl.mechanism": mechanism})
        with pytest.raises(PermissionError, match=r"rejected the authentication by .*; check user name and password"):
            read(settings | {"bootstrap.servers": address, "sasl.password": SECRET})
        assert len(connections) == 1


def test_connection_end_is_reported_after_last_bytes():
    ours, theirs = (LargeReads(fileno=end.detach()) for end in socket.socketpair())
    theirs.sendall(b"reason")
    theirs.close()
    assert ours.recv(4096) == b"reason"
    with pytest.raises(BlockingIOError):
        ours.recv(4096)
    assert ours.recv(4096) == b""
    ours.close()


def test_authentication_where_none_is_accepted_raises(safe):
    settings = password(safe, **{"bootstrap.servers": safe.plain, "security.protocol": "SASL_PLAINTEXT"})
    with pytest.raises(
        ConnectionError, match=f"^{safe.plain} accepts no authentication: set security.protocol to PLAINTEXT"
    ):
        read(settings)
    assert len(read({"bootstrap.servers": safe.plain})) > 0


def test_port_that_requires_authentication_is_named(safe):
    with pytest.raises(
        ConnectionError, match=r"its port may expect authentication: set security.protocol to SASL_PLAINTEXT"
    ):
        read({"bootstrap.servers": safe.open}, timeout_ms=60_000)
    settings = password(safe, **{"bootstrap.servers": safe.open, "security.protocol": "SASL_PLAINTEXT"})
    assert len(read(settings)) > 0


def test_disabled_mechanism_is_rejected(safe):
    settings = password(safe, **{"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": "token"})
    failures(
        settings,
        PermissionError,
        f"^{safe.secure} rejected the authentication by OAUTHBEARER: .* mechanisms.*; set sasl",
    )


def test_certificate_of_unknown_authority_is_rejected(safe):
    settings = password(safe, **{"ssl.truststore.location": str(safe.stranger)})
    failures(
        settings, ConnectionError, f"certificate of {safe.secure} is not trusted: .*; name .*ssl.truststore.location"
    )


def test_certificate_for_another_host_is_rejected(safe):
    host = safe.secure.replace("127.0.0.1", "localhost")
    failures(
        password(safe, **{"bootstrap.servers": host}), ConnectionError, f"certificate of {host} is (for another|not)"
    )


def test_broker_requiring_certificate_is_reported(safe):
    settings = password(safe, **{"bootstrap.servers": safe.mutual, "security.protocol": "SSL"})
    failures(settings, ConnectionError, f"^{safe.mutual} rejected the client's certificate, or needs one: .*keystore")


def test_protocol_mismatch_with_port_raises_with_reason(safe):
    failures(
        {"bootstrap.servers": safe.secure},
        ConnectionError,
        f"^{safe.secure} does not .* over PLAINTEXT: set security.prot",
    )
    settings = password(safe, **{"bootstrap.servers": safe.plain})
    failures(settings, ConnectionError, f"^no broker can be reached \\({safe.plain}: .*(security.protocol|PLAINTEXT)")


def test_brokers_refusing_connections_fail_after_few_tries():
    servers = {"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"}
    failures(
        servers, ConnectionError, r"^no broker can be reached \(.*127\.0\.0\.1:[12].*refused.*\).*: check bootstrap"
    )


def test_unresolvable_brokers_fail_after_few_tries():
    servers = {"bootstrap.servers": "no-such-host.invalid:9092"}
    failures(
        servers, ConnectionError, r"^no broker can be reached \(no-such-host\.invalid:9092: .*\).*: check bootstrap"
    )


def test_expired_certificate_is_named(safe):
    settings = password(safe, **{"bootstrap.servers": safe.expired, "security.protocol": "SSL"})
    failures(settings, ConnectionError, f"^the certificate of {safe.expired}, or of an authority, has expired: ")


ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def test_missing_acl_is_named_to_user(safe):
    admin = AdminClient({"bootstrap.servers": safe.plain, "log_level": 3})
    for topic in ("private", "listed"):
        create_with(safe.plain, topic, 1)
        lh.write.topic(TABLE, topic, bootstrap_servers=safe.plain)
    everyone = [
        (ResourceType.TOPIC, "private", "User:carol", AclOperation.ALL),
        (ResourceType.TOPIC, "listed", "User:carol", AclOperation.ALL),
        (ResourceType.TOPIC, "listed", f"User:{secured.USER}", AclOperation.DESCRIBE),
        (ResourceType.GROUP, "private", "User:carol", AclOperation.ALL),
    ]
    acls = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, user, "*", operation, AclPermissionType.ALLOW)
        for kind, name, user, operation in everyone
    ]
    for done in admin.create_acls(acls).values():
        done.result(timeout=60)
    until = time.monotonic() + 300
    while {acl.name for acl in admin.describe_acls(ANY_ACL).result(timeout=60)} != {"private", "listed"}:
        assert time.monotonic() < until, "the broker did not learn the ACLs in 300 s"
        time.sleep(0.1)
    for topic in ("private", "listed"):
        with pytest.raises(
            PermissionError, match=f"^{safe.secure} does not allow it: .*{topic}.*; the user needs an ACL"
        ):
            lh.read.topic(topic, settings=password(safe), timeout_ms=20_000).read_all()
        error, message = {
            "private": (PermissionError, f"^{safe.secure} does not allow it: .*{topic}.*; the user needs an ACL"),
            "listed": (lh.write.DeliveryError, f"{topic}: row 0 not delivered: not authorized: the user needs an ACL"),
        }[topic]
        with pytest.raises(error, match=message):
            lh.write.topic(TABLE, topic, settings=password(safe), timeout_ms=20_000)
    for options in ({"commit_group": "private"}, {"start": "group:private"}):
        with pytest.raises(PermissionError, match=r"does not allow it: .*group 'private'; the user needs an ACL"):
            read(password(safe), **options)


def test_unknown_topic_is_named(safe):
    with pytest.raises(ValueError, match=f"there is no topic 'nothing' at {safe.secure}: check its name"):
        lh.read.topic("nothing", settings=password(safe)).read_all()
    with pytest.raises(TopicNotFoundError, match=f"there is no topic 'nothing' at {safe.secure}: check its name"):
        lh.write.topic(TABLE, "nothing", settings=password(safe), timeout_ms=20_000)


# Stores ---------------------------------------------------------------------------------------------------------------


def test_pkcs12_stores_open_topic(safe, tmp_path):
    """The client's store is written by Python, and the trusted one by Java's keytool."""
    (tmp_path / "client.p12").write_bytes(secured.pkcs12(safe.client, "store-password"))
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", safe.authority, "-keystore", tmp_path / "trust.p12")
    settings = {
        "bootstrap.servers": safe.mutual,
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "trust.p12"),
        "ssl.truststore.password": "store-password",
        "ssl.keystore.location": str(tmp_path / "client.p12"),
        "ssl.keystore.password": "store-password",
        "ssl.keystore.type": "PKCS12",
    }
    written_and_read(settings)
    for store in ("truststore", "keystore"):
        for call in (read, lambda settings: lh.write.topic(TABLE, "orders", settings=settings)):
            with pytest.raises(
                ValueError, match=r"\.p12 cannot be read as a PKCS12 store: its password is wrong"
            ) as raised:
                call(settings | {f"ssl.{store}.password": SECRET})
            assert SECRET not in str(raised.value)


def test_java_store_is_rejected_with_conversion_command(safe, tmp_path):
    store = tmp_path / "trust.jks"
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", safe.authority, "-keystore", store, "-storetype", "JKS"
    )
    settings = password(safe, **{"ssl.truststore.location": str(store), "ssl.truststore.password": "store-password"})
    with pytest.raises(
        ValueError, match=r"trust\.jks is a Java key store.*`(keytool .*)`, and name the new file"
    ) as raised:
        read(settings)
    match = re.search("`keytool (.*)`", str(raised.value))
    assert match is not None
    keytool(*match[1].replace("trust.p12", str(tmp_path / "trust.p12")).split(), "-srcstorepass", "store-password")
    written_and_read(settings | {"ssl.truststore.location": str(tmp_path / "trust.p12")})


def keytool(*arguments: object) -> None:
    command = ["keytool", *map(str, arguments), "-storepass", "store-password"]
    if "-importkeystore" in command:
        command[-2] = "-deststorepass"
    subprocess.run(command, check=True, capture_output=True, timeout=60)


# The command line -----------------------------------------------------------------------------------------------------


def test_command_line_reads_with_authentication(safe, oauth_broker, provider, tmp_path, capsys, monkeypatch):
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in password(safe).items() if name != "sasl.password"))
    monkeypatch.setenv("KAFKA_PASSWORD", secured.PASSWORD)
    restore = ["state", "restore", "orders", str(tmp_path / "{number}" / "0_0"), "-s", "orders", "--force", "--json"]

    def restored(number: int, *options: str) -> int:
        command = [word.replace("{number}", str(number)) for word in restore]
        return main([*command, *options])

    assert restored(1, "--config", str(file), "-X", "sasl.password=${env:KAFKA_PASSWORD}") == 0
    login = bearer(oauth_broker, provider, **credentials(provider)).items()
    assert restored(2, *(word for name, value in login for word in ("-X", f"{name}={value}"))) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 2
    assert restored(3, "--config", str(file), "-X", f"sasl.password={SECRET}") != 0
    captured = capsys.readouterr()
    assert f"{safe.secure} rejected the authentication by SCRAM-SHA-512: " in captured.err
    assert SECRET not in captured.out + captured.err


# A prompt ------------------------------------------------------------------------------------------------------------


def test_command_prompts_for_password_missing_from_settings(safe: secured.Secured) -> None:
    settings = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": secured.PLAIN_USER,
        "ssl.truststore.location": str(safe.authority),
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    command = [
        sys.executable,
        "-m",
        "letterhead",
        "read",
        f"kafka://{safe.secure}/orders",
        *options,
        "--csv",
        "-n",
        "1",
    ]
    prompt = f"password of {secured.PLAIN_USER}"
    code, screen = answer(command, {prompt: secured.PLAIN_PASSWORD + "\n"})
    assert (code, screen.count(prompt), secured.PLAIN_PASSWORD in screen) == (0, 1, False), screen
    assert len(screen.splitlines()) == 3
    code, screen = answer(command, {prompt: SECRET + "\n"})
    assert (code, SECRET in screen) == (3, False), screen
