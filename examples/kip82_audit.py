"""Record who produced a message, its id, and its first cluster.

Identity and origin survive a copy to another cluster, and the client changes. A message that returns is recognized. Run: python examples/kip82_audit.py
"""

import tempfile
from pathlib import Path

from letterhead.kip82 import Audit, AuditEntry, Consumer, MessageLog, Producer, ProducerRecord

cluster_a = MessageLog(Path(tempfile.mkdtemp()) / "orders-0")
cluster_b = MessageLog(Path(tempfile.mkdtemp()) / "orders-0")
entries: list[AuditEntry] = []

shop = Producer(cluster_a.produce, interceptors=[Audit("shop-1", "cluster-a")])
for key in (b"o1", b"o2"):
    shop.send(ProducerRecord("orders", key, b"42"))
# An old producer writes no headers, and its message is reported without them.
cluster_a.append([{"magic": 1, "key": b"o3", "value": b"42", "timestamp": 0}])

audit = Audit("mirror-1", "cluster-b", report=entries.append)
mirror = Producer(cluster_b.produce, interceptors=[audit])
for record in Consumer(cluster_a.fetch, "orders", interceptors=[audit]).poll():
    mirror.send(record.forward("orders"))
Consumer(cluster_b.fetch, "orders", interceptors=[audit]).poll()

in_a, in_b = entries[:3], entries[3:]
for here, there in zip(in_a, in_b, strict=True):
    same = here.message_id is not None and here.message_id == there.message_id
    print(here.client_id, "in", here.origin_cluster, "|", there.client_id, "from", there.origin_cluster, "| same", same)
cluster_a.close()
cluster_b.close()
