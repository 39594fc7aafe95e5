"""The client of schema registries, against a server that answers what a test wants."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from letterhead.schemas import RegisteredSchema, Registry, registry
from tests.silent import SilentServer

SECRET = "never-to-be-seen"


class Server:
    """Answers with ``replies[path]``: a list of statuses or JSON, of which the last one is repeated."""

    def __init__(self) -> None:
        self.replies: dict[str, list[Any]] = {}
        self.requests: list[tuple[str, str | None]] = []
        replies, requests = self.replies, self.requests

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append((self.path, self.headers["Authorization"]))
                answers = replies.get(self.path, [404])
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(answer if isinstance(answer, int) else 200)
                if answer == 302:
                    self.send_header("Location", "/schemas/ids/1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(registry, "_PAUSE_SECONDS", 0.001)
    running = Server()
    yield running
    running.close()


def test_schema_is_fetched_once_per_process(server: Server) -> None:
    server.replies["/schemas/ids/7"] = [{"schema": '"int"'}]
    assert Registry(server.url).schema(7) == RegisteredSchema("AVRO", '"int"', {})
    pickle.loads(pickle.dumps(Registry(server.url))).schema(7)
    assert server.requests == [("/schemas/ids/7", None)]
    Registry(server.url, {"bearer.auth.token": "other"}).schema(7)  # may not see what another user does
    assert len(server.requests) == 2


def test_guid_is_read(server: Server) -> None:
    server.replies["/schemas/guids/89791762-2336-4186-9674-299b90a802e2"] = [{"schema": "x", "schemaType": "protobuf"}]
    found = Registry(server.url).schema("89791762-2336-4186-9674-299b90a802e2")
    assert found == RegisteredSchema("PROTOBUF", "x", {})


def test_unknown_id_is_requested_again(server: Server) -> None:
    server.replies["/schemas/ids/8"] = [404, {"schema": '"int"'}]
    assert Registry(server.url).schema(8) is None
    assert Registry(server.url).schema(8) is not None


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"basic.auth.user.info": f"me:{SECRET}"}, "Basic bWU6bmV2ZXItdG8tYmUtc2Vlbg=="),
        ({"bearer.auth.token": "${env:REGISTRY_TOKEN}"}, f"Bearer {SECRET}"),
    ],
)
def test_credentials_are_sent(
    server: Server, settings: dict[str, str], sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TOKEN", SECRET)
    server.replies["/schemas/ids/1"] = [{"schema": '"int"'}]
    client = Registry(server.url, settings)
    assert client.schema(1) is not None
    assert server.requests == [("/schemas/ids/1", sent)]
    assert SECRET not in repr(client)


@pytest.mark.parametrize("status", [401, 403])
def test_rejected_credentials_raise_without_retries(server: Server, status: int) -> None:
    server.replies["/schemas/ids/1"] = [status]
    with pytest.raises(PermissionError, match=f"HTTP status {status}") as caught:
        Registry(server.url, {"basic.auth.user.info": f"me:{SECRET}"}).schema(1)
    assert SECRET not in str(caught.value)
    assert len(server.requests) == 1


def test_temporary_error_is_retried(server: Server) -> None:
    server.replies["/schemas/ids/1"] = [503, 429, {"schema": '"int"'}]
    assert Registry(server.url).schema(1) is not None


@pytest.mark.parametrize(
    "reply", [500, 302, 400, b"<html>", [], {"schema": 7}, {"id": 7}, {"schema": "", "references": [1]}]
)
def test_unexpected_reply_raises_connection_error(server: Server, reply: Any) -> None:
    server.replies["/schemas/ids/1"] = [reply]
    with pytest.raises(ConnectionError, match=r"no schema from|did not return|returned no schema"):
        Registry(server.url).schema(1)


@pytest.mark.parametrize(
    "replies", [{"ids/globalIds/1?dereference=true": [b"\xff"]}, {}, {"search/artifacts?globalId=1": [{}]}]
)
def test_unexpected_apicurio_reply_raises_connection_error(server: Server, replies: dict[str, Any]) -> None:
    usual = {"ids/globalIds/1?dereference=true": ['"int"'], "search/artifacts?globalId=1": [{"artifacts": [{}]}]}
    if "ids/globalIds/1?dereference=true" in replies:
        usual["search/artifacts?globalId=1"] = [{"artifacts": [{"type": "AVRO"}]}]
    server.replies.update({f"/apis/registry/v2/{path}": reply for path, reply in (usual | replies).items()})
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1"):
        Registry(f"{server.url}/apis/registry/v2").schema(1)


def test_unresponsive_registry_raises_connection_error(server: Server) -> None:
    server.close()
    with pytest.raises(ConnectionError, match="no schema from"):
        Registry(server.url).schema(1)


@pytest.mark.parametrize("drips", [False, True])
def test_silent_registry_raises_connection_error_in_time(drips: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PAUSE_SECONDS", 0.001)
    begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" if drips else b""
    with SilentServer(begin, drips=drips) as silent, pytest.raises(ConnectionError, match="no schema from"):
        Registry(f"http://{silent.place}", {"request.timeout.ms": "200"}).schema(1)


def test_next_registry_address_is_tried(server: Server) -> None:
    with SilentServer() as silent:
        closed = f"http://{silent.place}"
    server.replies["/schemas/ids/1"] = [{"schema": '"int"'}]
    assert Registry(f"{closed},{server.url}").schema(1) is not None


def test_references_are_resolved(server: Server) -> None:
    def refers(name: str, subject: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": subject, "version": 3}]

    server.replies["/schemas/ids/1"] = [{"schema": "a", "references": refers("b", "with/slash")}]
    server.replies["/subjects/with%2Fslash/versions/3"] = [{"schema": "b", "references": refers("c", "third")}]
    server.replies["/subjects/third/versions/3"] = [{"schema": "c"}]
    third = RegisteredSchema("AVRO", "c", {})
    assert Registry(server.url).schema(1) == RegisteredSchema(
        "AVRO", "a", {"b": RegisteredSchema("AVRO", "b", {"c": third})}
    )


@pytest.mark.parametrize("problem", ["cycle", "missing"])
def test_endless_references_raise(server: Server, problem: str) -> None:
    reference = [{"name": "b", "subject": "s", "version": 1}]
    server.replies["/schemas/ids/1"] = [{"schema": "a", "references": reference}]
    if problem == "cycle":
        server.replies["/subjects/s/versions/1"] = [{"schema": "b", "references": reference}]
    with pytest.raises(ValueError, match="refers to"):
        Registry(server.url).schema(1)


@pytest.mark.parametrize(
    ("url", "settings", "error"),
    [
        ("registry:8081", {}, "must be like http"),
        ("http://a:1,ftp://b:1", {}, "must be like http"),
        (f"http://me:{SECRET}@registry:8081", {}, r"basic\.auth\.user\.info"),
        ("http://registry:8081", {"basic.auth.user": "a"}, r"did you mean 'basic\.auth\.user\.info'"),
        ("http://a:1,http://b:1/apis/registry/v2", {}, "different APIs"),
        ("http://registry:8081", {"apicurio.registry.use-id": "globalId"}, "for an address that ends with"),
        (
            "http://a:1/apis/registry/v2",
            {"apicurio.registry.use-id": "id"},
            r"unknown value of apicurio\.registry\.use-id",
        ),
        ("http://registry:8081", {"request.timeout.ms": "-1"}, "must be 1 to 600000"),
        ("http://registry:8081", {"basic.auth.user.info": "a:b", "bearer.auth.token": "c"}, "exclude each other"),
    ],
)
def test_wrong_arguments_are_rejected(url: str, settings: dict[str, str], error: str) -> None:
    with pytest.raises(ValueError, match=error) as caught:
        Registry(url, settings)
    assert SECRET not in str(caught.value)


def test_unreadable_setting_raises_connection_error(server: Server) -> None:
    for settings in ({"bearer.auth.token": "${env:NO_SUCH_TOKEN}"}, {"basic.auth.user.info": "${file:/no/such/file}"}):
        with pytest.raises(ConnectionError, match="cannot be reached: "):
            Registry(server.url, settings).schema(1)
    with pytest.raises(ConnectionError, match=r"cannot be reached: .*certificate"):
        Registry("https://127.0.0.1:1", {"ssl.ca.location": "/no/such/file"}).schema(1)


def test_oversized_reply_raises_connection_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MAX_BYTES", 1 << 20)
    server.replies["/schemas/ids/1"] = [{"schema": "x" * (1 << 20)}]
    with pytest.raises(ConnectionError, match="more than 1 MiB"):
        Registry(server.url).schema(1)


def test_token_that_would_end_its_header_is_rejected(server: Server) -> None:
    with pytest.raises(ConnectionError, match=r"cannot be reached: bearer\.auth\.token"):
        Registry(server.url, {"bearer.auth.token": "a\r\nX: b"}).schema(1)
    assert server.requests == []
