"""Route messages between logs by a header: a mirror forwards messages for other regions.

The payload is not read. Run: python examples/kip82_routing.py
"""

import tempfile
from pathlib import Path

from letterhead.kip82 import (
    ConsumerRecord,
    HeaderSerializer,
    IntHeaders,
    KeyRange,
    MessageLog,
    ProducerInterceptors,
    ProducerRecord,
    Routing,
)

REGION = 1_000_000_001  # of the range for in-house use
OURS = KeyRange(1_000_000_000, 1_000_000_099, "billing")
text = {REGION: HeaderSerializer.for_type("string")}

logs = Path(tempfile.mkdtemp())
orders = MessageLog(logs / "orders-0", "int")
regions = {region: MessageLog(logs / f"orders-{region}-0", "int") for region in ("eu", "us")}

for key, region in [(b"o1", "eu"), (b"o2", "us"), (b"o3", "eu")]:
    record = ProducerRecord(
        "orders", key, b"\x00encrypted", headers=IntHeaders(serializers=text, writes=OURS), header_format="int"
    )
    record.set_header(REGION, region)
    orders.append([record])

mirror = ProducerInterceptors([Routing(REGION, {region: f"orders-{region}" for region in regions})])
by_topic = {log.topic: log for log in regions.values()}
for message in orders.scan():
    consumed = ConsumerRecord.from_message(message, topic=orders.topic, header_format="int", serializers=text)
    routed = mirror.on_send(consumed.forward(consumed.topic))
    by_topic[routed.topic].append([routed])

for topic, log in by_topic.items():
    print(topic, [(message.key, message.headers) for message in log.scan()])
for log in (orders, *regions.values()):
    log.close()
