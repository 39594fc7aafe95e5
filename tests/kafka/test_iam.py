"""Logins with IAM: signatures as AWS's Java library makes them, and a broker that verifies them."""

from __future__ import annotations

import base64
import datetime
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import botocore.auth
import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.kafka.iam import Credentials, IamIdentity, IamSettings
from letterhead.kafka.settings import reader_settings, spark_settings
from tests.kafka import secured

pytestmark = pytest.mark.broker

REQUESTS = [
    json.loads(line) for line in (Path(__file__).parent / "iam_requests.jsonl").read_text(encoding="utf-8").splitlines()
]
"""What aws-msk-iam-auth 2.3.2 signed; tests/jvm/iam wrote it."""

MODULE = "software.amazon.msk.auth.iam.IAMLoginModule required{};"
HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


@pytest.fixture(autouse=True)
def nothing_of_aws(monkeypatch, tmp_path):
    """No credentials but those of the test."""
    for name in (
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


def signed_at(monkeypatch: pytest.MonkeyPatch, request: dict[str, Any], time: str, servers: str) -> IamIdentity:
    """An identity with the keys of a request, which signs at a time."""
    at = datetime.datetime.strptime(time, "%Y%m%dT%H%M%SZ")
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: at)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", request["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", request["secret_key"])
    if request["token"] is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", request["token"])
    return IamIdentity(IamSettings(), servers)


@pytest.mark.parametrize("request_", [request for request in REQUESTS if "payload" in request])
def test_payload_matches_aws(monkeypatch, request_):
    payload = request_["payload"]
    identity = signed_at(monkeypatch, request_, payload["x-amz-date"], f"{request_['host']}:9098")
    message = identity.payload(request_["host"])
    # The order of members is that of a hash table in Java.
    assert canonical(json.loads(message)) == canonical(payload)


def canonical(payload: dict[str, str]) -> bytes:
    return json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize("request_", [request for request in REQUESTS if "url" in request])
def test_token_matches_aws(monkeypatch, request_):
    url = urlsplit(request_["url"])
    parameters = dict(parse_qsl(url.query))
    servers = f"b-1.orders.a1b2c3.c2.kafka.{request_['region']}.amazonaws.com:9098"
    token = signed_at(monkeypatch, request_, parameters["X-Amz-Date"], servers).oauth_token()
    assert "=" not in token
    own = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert own.hostname == url.hostname
    assert dict(parse_qsl(own.query)) == parameters | {"User-Agent": "letterhead"}


def iam(safe: secured.Secured, options: str = "", **more: str) -> dict[str, str]:
    """Settings as AWS's guides have them."""
    return {
        "bootstrap.servers": safe.iam,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(safe.authority),
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": MODULE.format(options),
        "sasl.client.callback.handler.class": HANDLER,
    } | more


@pytest.fixture
def keys(monkeypatch):
    """An access key that the broker knows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", secured.ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secured.SECRET_KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", secured.REGION)


def write_and_read(settings: dict[str, str]) -> None:
    """Append a row, and read it."""

    def count() -> int:
        with lh.read.topic("orders", settings=settings, timeout_ms=30_000) as reader:
            return len(reader.read_all())

    before = count()
    assert lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=settings).rows == 1
    assert count() == before + 1


def test_environment_keys_open_topic(safe, keys):
    write_and_read(iam(safe))


def test_oauthbearer_tokens_open_topic(safe, keys):
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    write_and_read(iam(safe) | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": handler,
        "sasl.client.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.internals.secured."
        "OAuthBearerSaslClientCallbackHandler",
    })  # fmt: skip


def test_profile_opens_topic(safe, tmp_path):
    (tmp_path / "credentials").write_text(
        f"[letters]\naws_access_key_id={secured.ACCESS_KEY}\naws_secret_access_key={secured.SECRET_KEY}\n"
    )
    (tmp_path / "config").write_text(f"[profile letters]\nregion={secured.REGION}\n")
    write_and_read(iam(safe, ' awsProfileName="letters"'))
    with pytest.raises(PermissionError, match=r"got no AWS credentials: .*\(others\) could not be found"):
        write_and_read(iam(safe, ' awsProfileName="others"'))


class Sts(BaseHTTPRequestHandler):
    """Answers as AWS's service that issues temporary credentials."""

    requests: list[dict[str, list[str]]]
    status = 200

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.requests.append(form)
        answer = (
            "<AssumeRoleResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><AssumeRoleResult><Credentials>"
            f"<AccessKeyId>{secured.ROLE_ACCESS_KEY}</AccessKeyId><SecretAccessKey>{secured.ROLE_SECRET_KEY}</SecretAccessKey>"
            f"<SessionToken>{secured.ROLE_TOKEN}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
            "</AssumeRoleResult></AssumeRoleResponse>"
            if self.status == 200
            else "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>"
        ).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def sts(monkeypatch) -> Iterator[type[Sts]]:
    handler = type("Own", (Sts,), {"requests": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    server.server_close()


def test_role_opens_topic(safe, keys, sts):
    options = ' awsRoleArn="arn:aws:iam::123456789012:role/letters" awsRoleSessionName="job" awsRoleExternalId="77"'
    write_and_read(iam(safe, f'{options} awsStsRegion="{secured.REGION}"'))
    assert {(form["RoleArn"][0], form["RoleSessionName"][0], form["ExternalId"][0]) for form in sts.requests} == {
        ("arn:aws:iam::123456789012:role/letters", "job", "77")
    }
    sts.status = 403
    with pytest.raises(PermissionError, match=r"got no AWS credentials: .*AccessDenied.*not authorized"):
        write_and_read(iam(safe, options))


def test_wrong_key_is_rejected_with_remedy(safe, keys, monkeypatch):
    secret = "never-to-be-seen/3"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    for call in (
        lambda: lh.read.topic("orders", settings=iam(safe), timeout_ms=30_000).read_all(),
        lambda: lh.write.topic(
            pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=iam(safe), timeout_ms=30_000
        ),
    ):
        with pytest.raises(
            PermissionError,
            match=f"^{safe.iam} rejected the authentication by AWS_MSK_IAM: .*; check the AWS credentials",
        ) as raised:
            call()
        assert secret not in str(raised.value)


def test_missing_credentials_or_region_raise_before_connecting(safe, keys, monkeypatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ValueError, match=r"no AWS region: .*AWS_REGION or AWS_DEFAULT_REGION"):
        write_and_read(iam(safe))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        with monkeypatch.context() as advised:
            advised.setenv(name, secured.REGION)
            write_and_read(iam(safe))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_DEFAULT_REGION", secured.REGION)
    for call in (
        lambda: lh.read.topic("orders", settings=iam(safe)).read_all(),
        lambda: lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=iam(safe)),
    ):
        with pytest.raises(PermissionError, match="AWS_MSK_IAM found no AWS credentials: set AWS_ACCESS_KEY_ID"):
            call()


def test_identity_without_secrets_goes_to_executors(monkeypatch):
    request = REQUESTS[0]
    identity = signed_at(monkeypatch, request, request["payload"]["x-amz-date"], f"{request['host']}:9098")
    assert identity.current() == Credentials(request["access_key"], request["secret_key"], None)
    pickled = pickle.dumps(identity)
    assert request["secret_key"].encode() not in pickled
    assert pickle.loads(pickled).payload(request["host"]) == identity.payload(request["host"])


def test_options_missing_from_login_module_are_rejected():
    settings = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    assert reader_settings(None, settings).authentication.iam is not None
    with pytest.raises(ValueError, match=r"option of sasl\.jaas\.config 'awsRoleArm': did you mean 'awsRoleArn'"):
        reader_settings(None, settings | {"sasl.jaas.config": MODULE.format(' awsRoleArm="x"')})
    with pytest.raises(ValueError, match=r"AWS_MSK_IAM needs kafka\.security\.protocol=SASL_SSL"):
        spark_settings(settings | {"security.protocol": "SASL_PLAINTEXT"})
    relocated = "shadedmskiam." + MODULE.format("")
    assert spark_settings(settings | {"sasl.jaas.config": relocated}).authentication.iam is not None
