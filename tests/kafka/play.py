"""A broker for a person to play with: `make kafka` starts and fills one, `make kafka-stop` stops it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import psutil
import pyarrow as pa
from confluent_kafka.admin import AdminClient

import letterhead as lh
from letterhead import schemas
from tests.kafka import registry
from tests.kafka.broker import BUILT, ROOT, STOP_LIMIT, Broker
from tests.kafka.topics import create, damage, orders, produce
from tests.versions import KAFKA

USUAL_PORT, USUAL_REGISTRY_PORT = 9092, 8081
COUNT, AVRO_COUNT = 10_000, 1_000

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"], "default": None}],
}

SHOWN = """\
Kafka {version} runs at {address}; its files are in {directory}. `make kafka-stop` stops it.

  orders             {count:,} records of the bundled topic; {damaged} have a header that was damaged on purpose
  orders-clean       empty
  orders-quarantine  empty
{registry}
In a shell, from this directory:

{shell}
In Python (`{python}`):

{lines}
In Spark with its Kafka connector:

  PYSPARK_PYTHON={python} SPARK_LOCAL_IP=127.0.0.1 {pyspark} --master 'local[2]' \\
    --jars "$(echo target/kafka/connector/*.jar | tr ' ' ,)"

Then paste:

{snippet}
docs/how-to/set-bad-rows-aside.md goes on from here: a quarantine, edits, and back to Kafka.
"""

REGISTRY = """\
  orders-avro        {count:,} records whose values are Avro, by the schema registry at {url}
"""

REGISTRY_SHELL = """\
{letterhead} read kafka://{address}/orders-avro --value avro --registry {url} --last 3
"""

SHELL = """\
{letterhead} scan kafka://{address}/orders
{letterhead} read kafka://{address}/orders --last 3
{letterhead} read kafka://{address}/orders --count-by tenant --errors column
"""

LINES = """\
import letterhead as lh
types = {{"tenant": "string", "amount_cents": "int64", "retry": "int32"}}
orders = lh.read.topic("orders", bootstrap_servers="{address}", columns=["partition", "offset"], headers=types, errors="column").read_all()
print(orders.group_by("tenant").aggregate([("amount_cents", "sum")]).to_pandas())
"""

SNIPPET = """\
from letterhead import spark as lhs
orders = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", "{address}")
    .option("subscribe", "orders")
    .option("includeHeaders", "true")
    .load()
)
types = {{"tenant": "string", "amount_cents": "int64", "retry": "int32"}}
typed = lhs.select_headers(orders, types, keep=["partition", "offset"], errors="column")
typed.where("error is null").groupBy("tenant").sum("amount_cents").show()
typed.where("error is not null").selectExpr("partition", "offset", "error[0].message").show(5, truncate=False)
"""


def start(broker: Broker) -> str:
    """Start a broker, and a registry if it was built, and fill them, unless they run already; what to do next."""
    records, damaged = damage(orders(ROOT / "tests" / "samples", COUNT))
    if broker.process is None:
        broker.start(USUAL_PORT if _is_free(USUAL_PORT) else None, attached=False)
        try:
            create(broker.address, "orders", "orders-clean", "orders-quarantine")
            produce(broker.address, "orders", records)
        except BaseException:
            broker.stop()  # half full, it would pass for a full one the next time
            raise
    url = _start_registry(broker)
    scripts = Path(sys.executable).parent
    return SHOWN.format(
        version=KAFKA,
        address=broker.address,
        directory=_short(broker.directory),
        count=len(records),
        damaged=len(damaged),
        python=_short(Path(sys.executable)),
        pyspark=_short(scripts / "pyspark"),
        registry="" if url is None else REGISTRY.format(count=AVRO_COUNT, url=url),
        shell=(SHELL if url is None else SHELL + REGISTRY_SHELL).format(
            address=broker.address, letterhead=_short(scripts / "letterhead"), url=url
        ),
        lines=LINES.format(address=broker.address),
        snippet=SNIPPET.format(address=broker.address),
    )


def stop(broker: Broker) -> None:
    """Stop a broker and its registry, if they run."""
    process = _registry_process(broker)
    if process is not None:
        process.kill()
        process.wait(STOP_LIMIT)
    broker.stop()


def _start_registry(broker: Broker) -> str | None:
    """Return the address of the registry beside a broker, or None if it was not built; write values by a schema of it."""
    if not (registry.BUILT / ".built").exists():
        return None
    directory = broker.directory / "registry"
    if _registry_process(broker) is not None:
        return (directory / "url").read_text()
    running = registry.Apicurio(
        directory, USUAL_REGISTRY_PORT if _is_free(USUAL_REGISTRY_PORT) else None, attached=False
    )
    try:
        encoder = schemas.AvroEncoder(schemas.Registry(running.url), "orders-avro-value", ORDER, register=True)
        if "orders-avro" in AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=60).topics:
            # A registry keeps its schemas in memory: the only one has the same id again.
            encoder.id_prefix  # noqa: B018
        else:
            create(broker.address, "orders-avro")
            rows = [{"id": number, "city": "Berlin" if number % 3 else None} for number in range(AVRO_COUNT)]
            table = pa.table({"key": [f"order-{number}" for number in range(AVRO_COUNT)], "value": rows})
            lh.write.topic(schemas.encode_values(table, encoder), "orders-avro", bootstrap_servers=broker.address)
    except BaseException:
        running.stop()
        raise
    return running.url


def _registry_process(broker: Broker) -> psutil.Process | None:
    try:
        process = psutil.Process(int((broker.directory / "registry" / "pid").read_text()))
        return process if any("apicurio" in part for part in process.cmdline()) else None
    except (FileNotFoundError, psutil.NoSuchProcess):
        return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does; else a port that was in use a minute ago would count as in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    played = Broker(BUILT / "play")
    if sys.argv[1:] == ["start"]:
        print(start(played))
    elif sys.argv[1:] == ["stop"]:
        stop(played)
    else:
        sys.exit("say start or stop")
