"""Audit: which client produced a message, which message it is, and in which cluster it was first.

A message goes from one cluster to another; its identity and its origin stay, the client changes. So the same message is
recognised when it comes around again. Run: python examples/kip82_audit.py
"""

import tempfile
from pathlib import Path

from letterhead.kip82 import (
    Audit,
    AuditEntry,
    ConsumerInterceptors,
    ConsumerRecord,
    MessageLog,
    ProducerInterceptors,
    ProducerRecord,
)

cluster_a = MessageLog(Path(tempfile.mkdtemp()) / "orders-0")
cluster_b = MessageLog(Path(tempfile.mkdtemp()) / "orders-0")
entries: list[AuditEntry] = []

shop = ProducerInterceptors([Audit("shop-1", "cluster-a")])
for key in (b"o1", b"o2"):
    cluster_a.append([shop.on_send(ProducerRecord("orders", key, b"42"))])
# What an old producer wrote has no headers, and is reported as that.
cluster_a.append([{"magic": 1, "key": b"o3", "value": b"42", "timestamp": 0}])

audit = Audit("mirror-1", "cluster-b", report=entries.append)
seen = ConsumerInterceptors([audit]).on_consume(
    ConsumerRecord.from_message(message, topic="orders") for message in cluster_a.scan()
)
for record in seen:
    cluster_b.append([ProducerInterceptors([audit]).on_send(record.forward("orders"))])
ConsumerInterceptors([audit]).on_consume(
    ConsumerRecord.from_message(message, topic="orders") for message in cluster_b.scan()
)

in_a, in_b = entries[:3], entries[3:]
for here, there in zip(in_a, in_b, strict=True):
    same = here.message_id is not None and here.message_id == there.message_id
    print(here.client_id, "in", here.origin_cluster, "|", there.client_id, "from", there.origin_cluster, "| same", same)
cluster_a.close()
cluster_b.close()
