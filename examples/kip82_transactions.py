"""Carry one transaction id across three independent services: shop, billing, post.

Run: python examples/kip82_transactions.py
"""

import tempfile
from pathlib import Path

from letterhead.kip82 import ConsumerRecord, MessageLog, ProducerInterceptors, ProducerRecord, TransactionIds

ids = TransactionIds()
chain = ProducerInterceptors([ids])
logs = {topic: MessageLog(Path(tempfile.mkdtemp()) / f"{topic}-0") for topic in ("orders", "invoices", "parcels")}


def send(topic: str, key: bytes, value: bytes) -> None:
    """Produce, as the code of a service does: nothing here is about transactions."""
    logs[topic].append([chain.on_send(ProducerRecord(topic, key, value))])


def received(topic: str) -> list[ConsumerRecord]:
    """Consume."""
    return [ConsumerRecord.from_message(message, topic=topic) for message in logs[topic].scan()]


send("orders", b"o1", b"a hat")
send("orders", b"o2", b"a coat")
for order in received("orders"):
    with ids.handling(order):
        send("invoices", order.key, b"paid")
for invoice in received("invoices"):
    with ids.handling(invoice):
        send("parcels", invoice.key, b"sent")

flows: dict[object, list[str]] = {}
for topic in logs:
    for record in received(topic):
        flows.setdefault(ids.id_of(record), []).append(f"{topic}/{record.key.decode()}")
for steps in flows.values():
    print(" > ".join(steps))
for log in logs.values():
    log.close()
