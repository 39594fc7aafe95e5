"""Three brokers that are one cluster: each has a copy of everything, and two are enough to go on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.broker import Broker
from tests.ports import free_ports

NODES = (1, 2, 3)
LIMIT = 180.0
"""Seconds until what a cluster does not do is an error."""

# Who is gone is missed within seconds, so that tests are short. Leaders change only where a test makes them.
_MORE = """\
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
auto.leader.rebalance.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2500
controller.quorum.election.backoff.max.ms=300
replica.lag.time.max.ms=2500
replica.fetch.wait.max.ms=100
replica.fetch.backoff.ms=100
log.cleaner.dedupe.buffer.size=2097152
broker.rack=rack-{node}
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
num.network.threads=2
num.io.threads=4
"""


class Cluster:
    """Brokers that are controllers, too, with their files in a directory."""

    def __init__(self, directory: Path) -> None:
        self.brokers = {node: Broker(directory / str(node), heap="256m") for node in NODES}
        self._paused: set[int] = set()

    @property
    def address(self) -> str:
        """Where clients reach it, as ``host:port,host:port,host:port``."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Start it empty, and wait until all brokers answer."""
        ports = free_ports(2 * len(NODES))
        controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        voters = ",".join(f"{node}@127.0.0.1:{controllers[node]}" for node in NODES)

        def format(node: int, port: int) -> None:
            more = _MORE.format(node=node, voters=voters, port=port, controller=controllers[node])
            self.brokers[node].format(port, more=more)

        with ThreadPoolExecutor() as threads:
            list(threads.map(format, NODES, ports))
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_it_answers(LIMIT)
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self.wait("all brokers are known", lambda: len(self._admin.list_topics(timeout=10).brokers) == len(NODES))

    def stop(self) -> None:
        """End it at once: what it holds is not needed any more."""
        for broker in self.brokers.values():
            if broker.process is not None:
                broker.kill()

    def launch(self, node: int) -> None:
        """Start a broker that was killed, and wait until it answers."""
        self.brokers[node].launch()
        self.brokers[node].wait_until_it_answers(LIMIT)

    def pause(self, node: int) -> None:
        """Let a broker do nothing, and not notice it, until :meth:`resume`."""
        self._signal(node, signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        """Let a broker go on."""
        self._signal(node, signal.SIGCONT)
        self._paused.discard(node)

    def repair(self) -> None:
        """Resume paused brokers, and start those again that were killed."""
        for node in [*self._paused]:
            self.resume(node)
        for node, broker in self.brokers.items():
            if broker.process is None:
                self.launch(node)

    def _signal(self, node: int, number: int) -> None:
        process = self.brokers[node].process
        assert process is not None
        process.send_signal(number)

    def create(self, topic: str, partitions: int = 1, nodes: Sequence[int] = NODES, **settings: str) -> None:
        """Create a topic; the first of the ``nodes`` leads the first partition, the next one the next."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        copies = [[*nodes[number % len(nodes) :], *nodes[: number % len(nodes)]] for number in range(partitions)]
        new = NewTopic(topic, partitions, replica_assignment=copies, config=config)
        self._admin.create_topics([new])[topic].result(timeout=300)
        for number in range(partitions):
            self.wait_for_leader(topic, copies[number][0], number)
            self.wait_until_in_sync(topic, nodes, number)

    def move(self, topic: str, node: int, partition: int = 0) -> None:
        """Make a broker the leader of a partition, as an administrator does."""
        from kafka import KafkaAdminClient, TopicPartition

        place = TopicPartition(topic, partition)
        order = [node, *(other for other in NODES if other != node)]
        # The client may spend all its time on one address, so it gets none of a paused broker. The timeout is long because a
        # broker waits 30 s for a paused controller before it asks the next one.
        answering = [broker.address for number, broker in self.brokers.items() if number not in self._paused]
        with KafkaAdminClient(bootstrap_servers=answering, request_timeout_ms=120_000) as admin:
            assert not any(admin.alter_partition_reassignments({place: order}).values())
            admin.elect_leaders(0, {topic: [partition]})
        self.wait_for_leader(topic, node, partition)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; -1 for none."""
        return int(self._partition(topic, partition).leader)

    def wait_for_leader(self, topic: str, node: int, partition: int = 0) -> None:
        """Wait until a broker leads a partition."""
        self.wait(f"{node} leads {topic}-{partition}", lambda: self.leader(topic, partition) == node)

    def wait_until_in_sync(self, topic: str, nodes: Sequence[int] = NODES, partition: int = 0) -> None:
        """Wait until these brokers, and no other ones, have all of a partition."""
        self.wait(
            f"{nodes} are in sync in {topic}-{partition}",
            lambda: set(self._partition(topic, partition).isrs) == set(nodes),
        )

    def wait(self, condition_name: str, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        until = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError(f"not in {LIMIT:g} s: {condition_name}")
            time.sleep(0.1)

    def directory(self, node: int, topic: str, partition: int = 0) -> Path:
        """Where a broker has the segments of a partition."""
        return self.brokers[node].directory / "data" / f"{topic}-{partition}"

    def _partition(self, topic: str, partition: int) -> Any:
        from confluent_kafka import KafkaException

        try:
            return self._admin.list_topics(topic, timeout=10).topics[topic].partitions[partition]
        except (KafkaException, KeyError):  # the answer is that of a broker that starts, stops, or was paused
            return _Unknown


class _Unknown:
    leader = -1
    isrs = ()
