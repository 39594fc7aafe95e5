"""A broker for a person to play with: `make kafka` starts and fills one, `make kafka-stop` stops it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from tests.versions import KAFKA

from broker import BUILT, ROOT, Broker
from topics import create, damage, orders, produce

USUAL_PORT = 9092
COUNT = 10_000

SHOWN = """\
Kafka {version} runs at {address}; its files are in {directory}. `make kafka-stop` stops it.

  orders             {count:,} records of the bundled topic; {damaged} have a header that was damaged on purpose
  orders-clean       empty
  orders-quarantine  empty

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
typed = orders.transform(lhs.select_headers("headers", {{"tenant": "string", "amount_cents": "int64", "retry": "int32"}}, keep=["partition", "offset"], errors="column"))
typed.where("error is null").groupBy("tenant").sum("amount_cents").show()
typed.where("error is not null").selectExpr("partition", "offset", "error[0].message").show(5, truncate=False)
"""


def start(broker: Broker) -> str:
    """Start a broker and fill it, unless it runs already; what to do next."""
    records, damaged = damage(orders(ROOT / "tests" / "samples", COUNT))
    if broker.process is None:
        broker.start(USUAL_PORT if _is_free(USUAL_PORT) else None, attached=False)
        try:
            create(broker.address, "orders", "orders-clean", "orders-quarantine")
            produce(broker.address, "orders", records)
        except BaseException:
            broker.stop()  # half full, it would pass for a full one the next time
            raise
    scripts = Path(sys.executable).parent
    return SHOWN.format(
        version=KAFKA,
        address=broker.address,
        directory=_short(broker.directory),
        count=len(records),
        damaged=len(damaged),
        python=_short(Path(sys.executable)),
        pyspark=_short(scripts / "pyspark"),
        shell=SHELL.format(address=broker.address, letterhead=_short(scripts / "letterhead")),
        lines=LINES.format(address=broker.address),
        snippet=SNIPPET.format(address=broker.address),
    )


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
        played.stop()
    else:
        sys.exit("say start or stop")
