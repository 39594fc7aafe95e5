"""Encrypt and sign payloads end to end with an interceptor, and leave headers readable.

Needs `cryptography`: pip install . cryptography in a clone. Run: python examples/kip82_sealing.py
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import letterhead as lh
from letterhead.kip82 import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ConsumerRecord,
    MessageLog,
    ProducerInterceptor,
    ProducerInterceptors,
    ProducerRecord,
    Serialized,
)

NONCE, SIGNATURE = "seal-nonce", "seal-signature"


class Seal(ProducerInterceptor):
    """Encrypts payloads with AES-GCM; signs them, the record's key and the covered headers with Ed25519."""

    required = True  # a payload that cannot be encrypted is not sent

    def __init__(self, secret: bytes, key: Ed25519PrivateKey, covers: Sequence[str] = ()) -> None:
        self.cipher, self.key, self.covers = AESGCM(secret), key, covers

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        if SIGNATURE in record.headers:
            raise ValueError("the record has a seal already: open it first, or send it on as it is")
        value = record.serialized_value()
        if value is not None:  # a delete stays null, so that a log can compact it, and is signed
            nonce = os.urandom(12)
            record.set_header(NONCE, nonce)
            value = self.cipher.encrypt(nonce, value, covered(record, self.covers, None))
            record = record.replace(value=Serialized(value))
        record.set_header(SIGNATURE, self.key.sign(covered(record, self.covers, value)))
        return record


class Unseal(ConsumerInterceptor):
    """Checks the seal, decrypts the payload, and removes the headers of the seal."""

    required = True

    def __init__(self, secret: bytes, key: Ed25519PublicKey, covers: Sequence[str] = ()) -> None:
        self.cipher, self.key, self.covers = AESGCM(secret), key, covers

    def on_consume(self, records: Sequence[ConsumerRecord]) -> Sequence[ConsumerRecord]:
        return [self.opened(record) for record in records]

    def opened(self, record: ConsumerRecord) -> ConsumerRecord:
        where = f"offset {record.offset} of {record.topic}, partition {record.partition}"
        nonce, signature, value = record.get_header(NONCE), record.get_header(SIGNATURE), record.serialized_value()
        if signature is None or (nonce is None and value is not None):
            raise ValueError(f"the record at {where} has no seal")
        try:
            self.key.verify(signature, covered(record, self.covers, value))
            if value is not None:
                value = Serialized(self.cipher.decrypt(nonce, value, covered(record, self.covers, None)))
        except (InvalidSignature, InvalidTag):
            raise ValueError(f"the seal of the record at {where} does not match its content") from None
        return record.without_headers(NONCE, SIGNATURE).replace(value=value)


def covered(record: ProducerRecord | ConsumerRecord, covers: Sequence[str], value: bytes | None) -> bytes:
    """Return what must not change, as the bytes of one message."""
    headers = record.headers.to_headers()
    kept = lh.Headers([(key, sealed) for key in (*covers, NONCE) for sealed in headers.get_all(key)])
    return ProducerRecord("", record.serialized_key(), value, headers=kept).to_bytes()


def main() -> None:
    secret, shop = AESGCM.generate_key(bit_length=256), Ed25519PrivateKey.generate()
    sender = ProducerInterceptors([Seal(secret, shop, ["tenant"])])
    receiver = ConsumerInterceptors([Unseal(secret, shop.public_key(), ["tenant"])])
    with MessageLog(Path(tempfile.mkdtemp()) / "orders-0") as log:
        for value in (b"a hat for 42", None):
            log.append([sender.on_send(ProducerRecord("orders", b"o1", value, headers={"tenant": "acme"}))])
        sent = [ConsumerRecord.from_message(message, topic="orders") for message in log.scan()]

    # A component on the way has no secret, reads the headers, and adds one of its own.
    print("readable:", [(record.get_header("tenant"), b"hat" in (record.value or b"")) for record in sent])
    routed = [record.with_header("hop", "router-1") for record in sent]

    received = receiver.on_consume(routed)
    print("received:", [(record.value, record.tombstone, record.get_headers().keys()) for record in received])

    # Changing a covered header breaks the seal.
    try:
        receiver.on_consume([routed[0].with_header("tenant", "evil")])
    except ValueError as error:
        print("refused:", error)


if __name__ == "__main__":
    main()
