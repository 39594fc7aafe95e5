"""The interceptor of ``examples/kip82_sealing.py``: payloads are encrypted and signed, headers are not encrypted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from letterhead.kip82 import ConsumerInterceptors, ConsumerRecord, ProducerInterceptors, ProducerRecord

EXAMPLE = Path(__file__).parents[2] / "examples" / "kip82_sealing.py"
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

spec = importlib.util.spec_from_file_location("kip82_sealing", EXAMPLE)
assert spec is not None
assert spec.loader is not None
example: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def sealed(value: bytes | None = b"a hat") -> ConsumerRecord:
    chain = ProducerInterceptors([example.Seal(bytes(32), SIGNER, ["tenant"])])
    sent = chain.on_send(ProducerRecord("orders", b"k", value, headers={"tenant": "acme"}))
    return next(iter(ConsumerRecord.read(sent.to_bytes(), topic="orders")))


def opened(*records: ConsumerRecord, key: Any = SIGNER) -> list[ConsumerRecord]:
    return ConsumerInterceptors([example.Unseal(bytes(32), key.public_key(), ["tenant"])]).on_consume(records)


def test_sealed_payload_is_encrypted_and_its_headers_are_not() -> None:
    record = sealed()
    assert b"hat" not in record.value
    assert record.get_header("tenant") == "acme"
    [received] = opened(record.with_header("hop", "router"))
    assert (received.value, received.get_headers().keys()) == (b"a hat", ["tenant", "hop"])
    assert sealed().value != record.value, "every record has a nonce of its own"


def test_sealed_delete_stays_null() -> None:
    assert (sealed(None).value, sealed(None).tombstone) == (None, True)
    [received] = opened(sealed(None))
    assert (received.value, received.tombstone, received.get_headers().keys()) == (None, True, ["tenant"])


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.replace(value=record.value[:-1] + bytes([record.value[-1] ^ 1])),
        lambda record: record.replace(value=None),
        lambda record: record.replace(key=b"other"),
        lambda record: record.with_header("tenant", "evil"),
        lambda record: record.without_headers("tenant"),
        lambda record: record.replace(headers=sealed().get_headers(), value=sealed(b"a coat").value),
    ],
)
def test_changed_payload_or_covered_header_is_rejected(change: Any) -> None:
    with pytest.raises(ValueError, match="the seal of the record at offset 0 of orders, partition 0 does not match"):
        opened(change(sealed()))


def test_missing_second_or_foreign_seal_is_rejected() -> None:
    with pytest.raises(ValueError, match="has no seal"):
        opened(*ConsumerRecord.read(ProducerRecord("orders", value=b"plain").to_bytes(), topic="orders"))
    with pytest.raises(ValueError, match="does not match"):
        opened(sealed(), key=Ed25519PrivateKey.generate())
    with pytest.raises(ValueError, match="has a seal already"):
        ProducerInterceptors([example.Seal(bytes(32), SIGNER)]).on_send(sealed().forward("elsewhere"))
