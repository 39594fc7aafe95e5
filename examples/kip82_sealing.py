"""A payload that is encrypted and signed end to end, beside headers that everything on the way can read.

Needs `cryptography`: pip install 'letterhead[crypto]'. Run: python examples/kip82_sealing.py
"""

import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import letterhead as lh
from letterhead.kip82 import (
    ConsumerInterceptors,
    ConsumerRecord,
    MessageLog,
    ProducerInterceptors,
    ProducerRecord,
    Sealing,
)

secret = AESGCM.generate_key(bit_length=256)
shop = Ed25519PrivateKey.generate()
sender = ProducerInterceptors([Sealing(secret, sign=shop, covers=["tenant"])])
receiver = ConsumerInterceptors([Sealing(secret, verify=shop.public_key(), covers=["tenant"])])

log = MessageLog(Path(tempfile.mkdtemp()) / "orders-0")
for value in (b"a hat for 42", None):
    record = ProducerRecord("orders", b"o1", value, headers={"tenant": "acme"})
    log.append([sender.on_send(record)])

# A component on the way: no key, but the headers; it adds one of its own.
on_the_way = [ConsumerRecord.from_message(message, topic="orders") for message in log.scan()]
print("readable:", [(record.get_header("tenant"), b"hat" in (record.value or b"")) for record in on_the_way])
routed = [record.with_header("hop", "router-1") for record in on_the_way]

# The other end. A delete is null all the way, so that the log can compact it, and signed nevertheless.
print(
    "received:",
    [(record.value, record.tombstone, record.get_headers().keys()) for record in receiver.on_consume(routed)],
)

# Whoever changes a header that is covered, is found out.
try:
    receiver.on_consume([routed[0].with_header("tenant", "evil")])
except lh.DecodeError as error:
    print("refused:", error)
log.close()
