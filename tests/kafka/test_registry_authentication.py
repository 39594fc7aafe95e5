"""A registry that wants credentials or certificates."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from letterhead.schemas import Registry
from tests.kafka.identity import PASSWORD, Identity
from tests.kafka.registry import Apicurio, CertificateGate

pytestmark = pytest.mark.broker

SUBJECT, TEXT = "guarded-value", '"string"'


def bearer(token: str) -> dict[str, str]:
    return {"bearer.auth.token": token}


def basic(password: str) -> dict[str, str]:
    return {"basic.auth.user.info": f"reader:{password}"}


@pytest.fixture(scope="module")
def registered(guarded_apicurio: Apicurio, provider: Identity) -> Apicurio:
    found = Registry(guarded_apicurio.url, bearer(provider.token())).find_version(SUBJECT, TEXT, register=True)
    assert found is not None
    return guarded_apicurio


def test_token_and_password_are_accepted(registered: Apicurio, provider: Identity) -> None:
    for settings in (bearer(provider.token()), basic(PASSWORD)):
        registry = pickle.loads(pickle.dumps(Registry(registered.url, settings)))
        found = registry.latest(SUBJECT)
        assert found is not None
        assert found.text == TEXT
        secure = Registry(registered.tls_url, {**settings, "ssl.ca.location": str(registered.authority)})
        assert secure.latest(SUBJECT) == found


def test_apicurio_native_api_needs_credentials_too(registered: Apicurio) -> None:
    assert Registry(registered.own_url, basic(PASSWORD)).latest(SUBJECT) is not None
    with pytest.raises(PermissionError, match="401"):
        Registry(registered.own_url).latest(SUBJECT)


@pytest.mark.parametrize("settings", [{}, basic("never-to-be-seen"), bearer("never-to-be-seen"), "other audience"])
def test_wrong_credentials_are_rejected(registered: Apicurio, provider: Identity, settings: Any) -> None:
    own = bearer(provider.token("others")) if settings == "other audience" else settings
    registry = Registry(registered.url, own)
    with pytest.raises(PermissionError, match=r"rejected the request \(HTTP status 401\): check basic") as caught:
        registry.latest(SUBJECT)
    assert not any(secret.partition(":")[2] in str(caught.value) for secret in own.values() if ":" in secret)
    assert not any(secret in f"{caught.value}{registry!r}" for secret in own.values())


def test_read_only_user_cannot_register(registered: Apicurio) -> None:
    with pytest.raises(PermissionError, match="403") as caught:
        Registry(registered.url, basic(PASSWORD)).find_version("other-value", TEXT, register=True)
    assert PASSWORD not in str(caught.value)


def test_token_file_is_reread_for_each_request(registered: Apicurio, provider: Identity, tmp_path: Path) -> None:
    file = tmp_path / "token"
    registry = Registry(registered.url, bearer(f"${{file:{file}}}"))
    file.write_text(provider.token("others"))
    with pytest.raises(PermissionError):
        registry.latest(SUBJECT)
    file.write_text(provider.token())
    assert registry.latest(SUBJECT) is not None


def test_command_names_setting_and_hides_secret(run: Any, registered: Apicurio, monkeypatch: Any) -> None:
    path = "tests/samples/orders-0"
    monkeypatch.setenv("REGISTRY_PASSWORD", "never-to-be-seen")
    options = ("--value", "avro", "--registry", registered.url, "--value-subject", SUBJECT, "--end", "4")
    options += ("--registry-settings", "basic.auth.user.info=reader:${env:REGISTRY_PASSWORD}", "--errors", "null")
    result = run("read", path, *options)
    assert (result.code, "HTTP status 401" in result.err, "never-to-be-seen" in result.err) == (3, True, False)
    monkeypatch.setenv("REGISTRY_PASSWORD", PASSWORD)
    result = run("read", path, *options)
    # The records were written without a schema.
    assert (result.code, "unknown_type 2" in result.err) == (1, True)


@pytest.fixture
def gate(apicurio: Apicurio) -> Iterator[CertificateGate]:
    running = CertificateGate(apicurio)
    yield running
    running.close()


def test_client_certificate_is_presented(apicurio: Apicurio, gate: CertificateGate, tmp_path: Path) -> None:
    apicurio.register("certified", TEXT)
    trusted = {"ssl.ca.location": str(apicurio.authority)}
    whole = {**trusted, "ssl.certificate.location": str(apicurio.client)}
    assert Registry(gate.url, whole).latest("certified") is not None
    key, begin, chain = apicurio.client.read_text().partition("-----BEGIN CERT")
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "chain.pem").write_text(begin + chain)
    parts = {"ssl.certificate.location": str(tmp_path / "chain.pem"), "ssl.key.location": str(tmp_path / "key.pem")}
    assert Registry(gate.url, {**trusted, **parts}).latest("certified") is not None
    before = gate.connections
    with pytest.raises(ConnectionError, match=r"certificate, or needs one: .*ssl\.certificate\.location"):
        Registry(gate.url, trusted).latest("certified")
    assert gate.connections == before + 1
    with pytest.raises(ConnectionError, match=r"not trusted.*ssl\.ca\.location"):
        Registry(gate.url, {"ssl.certificate.location": str(apicurio.client)}).latest("certified")
