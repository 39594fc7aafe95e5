"""Payloads that are encrypted and signed, beside headers that everyone can read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._optional_dependencies import needed
from letterhead.errors import DecodeError, EncodeError
from letterhead.headers import Headers as CoreHeaders
from letterhead.kip82.interceptors import ConsumerInterceptor, ProducerInterceptor
from letterhead.kip82.layouts import BLOCKS
from letterhead.kip82.ranges import KeyRange
from letterhead.kip82.records import ConsumerRecord, ProducerRecord
from letterhead.kip82.serializers import Serialized

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["SealKeys", "Sealing"]

_NONCE_BYTES = 12


class SealKeys(NamedTuple):
    """The headers of a seal: text keys, or numbers for the layouts that have those.

    Attributes
    ----------
    nonce, signature : str or int
        The keys.
    """

    nonce: str | int = "seal-nonce"
    signature: str | int = "seal-signature"


class Sealing(ProducerInterceptor, ConsumerInterceptor):
    """Encrypts and signs payloads when they are sent; checks and decrypts them when they are consumed.

    A payload is encrypted with AES-GCM, with a nonce of its own. The Ed25519 signature covers the encrypted payload, the
    key of the record, and those headers that are named; all of them stay readable. Other headers can be added and
    changed on the way. A payload that is null stays null, so that it deletes its key, and is signed.

    Needs the package ``cryptography``: ``pip install 'letterhead[crypto]'``.

    Parameters
    ----------
    secret : bytes
        16, 24 or 32 bytes, known to both ends.
    sign : Ed25519PrivateKey, optional
        What a sender signs with.
    verify : Ed25519PublicKey, optional
        What a receiver checks with.
    covers : sequence of str or int, optional
        The headers that must not change on the way: set before this interceptor, and the same at both ends.
    keys : SealKeys, optional
        The headers for nonce and signature.
    writes : KeyRange, optional
        The range of its writer, where keys are numbers.

    Raises
    ------
    EncodeError
        On sending, if the record has a seal already (``repeated_key``).
    DecodeError
        On consuming, if there is no seal (``missing_key``), or it does not hold (``bad_signature``).
    ModuleNotFoundError
        If ``cryptography`` is not installed.
    ValueError
        If the secret has another size, or there is no key for what is to be done.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from letterhead.kip82 import ConsumerInterceptors, ConsumerRecord, ProducerInterceptors, ProducerRecord, Sealing
    >>> sender = Ed25519PrivateKey.generate()
    >>> seal = Sealing(bytes(32), sign=sender, verify=sender.public_key(), covers=["tenant"])
    >>> sent = ProducerInterceptors([seal]).on_send(ProducerRecord("orders", b"k", b"42", headers={"tenant": "acme"}))
    >>> sent.get_header("tenant"), b"42" in sent.value
    ('acme', False)
    >>> received = ConsumerRecord.read(sent.to_bytes(), topic="orders")
    >>> [record.value for record in ConsumerInterceptors([seal]).on_consume(received)]
    [b'42']
    """

    required = True

    def __init__(
        self,
        secret: bytes,
        *,
        sign: Ed25519PrivateKey | None = None,
        verify: Ed25519PublicKey | None = None,
        covers: Sequence[str | int] = (),
        keys: SealKeys | None = None,
        writes: KeyRange | None = None,
    ) -> None:
        with needed("sealing", "'letterhead[crypto]'"):
            from cryptography.exceptions import InvalidSignature, InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        self._cipher = AESGCM(secret)
        self._broken = InvalidSignature, InvalidTag
        self._sign = sign
        self._verify = verify
        self._covers = tuple(covers)
        self._keys = keys or SealKeys()
        self.writes = writes

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Encrypt and sign."""
        if self._sign is None:
            raise ValueError("sealing has nothing to sign with: give it sign=")
        if any(key in record.headers for key in self._keys):
            # Its nonce would be lost, and with it what the payload was.
            message = "the record has a seal already: open it first, or send it on as it is"
            raise EncodeError(message, format=BLOCKS[record.layout], code="repeated_key", key=str(self._keys.signature))
        value = record.serialized_value()
        if value is not None:
            nonce = os.urandom(_NONCE_BYTES)
            record.set_header(self._keys.nonce, nonce)
            value = self._cipher.encrypt(nonce, value, self._covered(record, None))
            record = record.replace(value=Serialized(value))
        record.set_header(self._keys.signature, self._sign.sign(self._covered(record, value)))
        return record

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        """Check and decrypt, and take the seal off."""
        return [self._open(record) for record in records]

    def _open(self, record: ConsumerRecord[Any, Any]) -> ConsumerRecord[Any, Any]:
        if self._verify is None:
            raise ValueError("sealing has nothing to check with: give it verify=")
        nonce, signature = (record.get_header(key) for key in self._keys)
        value = record.serialized_value()
        if signature is None or (nonce is None and value is not None):
            raise self._refused(record, "missing_key", "has no seal")
        try:
            self._verify.verify(signature, self._covered(record, value))
            if value is not None:
                value = self._cipher.decrypt(nonce, value, self._covered(record, None))
        except self._broken:
            message = "has a seal that does not hold: what it covers was changed, or other keys made it"
            raise self._refused(record, "bad_signature", message) from None
        return record.without_headers(*self._keys).replace(value=None if value is None else Serialized(value))

    def _covered(self, record: ProducerRecord[Any, Any] | ConsumerRecord[Any, Any], value: bytes | None) -> bytes:
        """Give what must not change, as the one message that these parts make."""
        covered = CoreHeaders(
            [(key, each) for key in (*self._covers, self._keys.nonce) for each in record.headers._all(key)]
        )
        marked = record.tombstone if record.layout == "wrapper" else None
        return ProducerRecord(
            "", record.serialized_key(), value, headers=covered, layout=record.layout, tombstone=marked
        ).to_bytes()

    def _refused(self, record: ConsumerRecord[Any, Any], code: str, what: str) -> DecodeError:
        where = f"the record at offset {record.offset} of {record.topic}, partition {record.partition},"
        return DecodeError(f"{where} {what}", format=BLOCKS[record.layout], code=code, key=str(self._keys.signature))
