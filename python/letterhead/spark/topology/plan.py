"""Check and plan a topology on the driver: :func:`run_topology`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from letterhead._invariants import instance
from letterhead.errors import TopologyError
from letterhead.spark.frame import HEADERS, KAFKA_COLUMNS, Input, check_frame, check_str, check_types, fields_of
from letterhead.spark.header_functions import decode_headers, encode_headers
from letterhead.spark.sail import not_on_sail

if TYPE_CHECKING:
    from letterhead.state.serdes import Serde
    from letterhead.state.topology import Topology

__all__ = ["TopologyPlan", "run_topology"]

# Every Spark worker imports this module, so the large package of stores is imported only to run a topology.


def run_topology(
    df: DataFrame,
    topology: Topology,
    *,
    application_id: str,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
) -> DataFrame:
    """Run a topology over the records of topics, with its stores in Spark's state.

    The :attr:`~letterhead.state.Processor.scope` of the processors determines the rows of a store. With ``"key"`` records
    are grouped by their key, stores have the rows of that key, and keys run in parallel. With ``"partition"`` records
    are grouped by partition number, and stores have all rows of the partition. Each group has its own stream time.

    Parameters
    ----------
    df : DataFrame
        Records, with these columns of Spark's Kafka source: ``topic``, ``partition``, ``offset``, ``timestamp``, ``key``,
        ``value`` and, with ``includeHeaders``, ``headers``. Each of their topics must have a source in the topology.
    topology : Topology
        The topology; it is pickled for the workers with its processors.
    application_id : str
        Name of the application; the names of changelog topics begin with it.
    key_serde, value_serde : Serde, optional
        Default serdes; by default bytes are unchanged.

    Returns
    -------
    DataFrame
        The records that the topology writes, with the columns ``topic``, ``partition``, ``key``, ``value``, ``headers``,
        ``timestamp`` and ``changelog``, which is true for changes of stores. Changes of stores have the partition of
        their task; records of a sink have none, because the key determines it.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    TopologyError
        If processors differ in scope, or a store is not supported on Spark.
    ValueError
        If a column is missing, Spark is older than 4.1, or its state is not in RocksDB.
    ModuleNotFoundError
        If protobuf is not installed, which Spark's workers use to access state.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> from letterhead.state import Processor, Topology
    >>> class Copy(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record)
    >>> topology = Topology().add_source("in", "orders").add_processor("copy", Copy, "in").add_sink("out", "copies", "copy")
    >>> lhs.run_topology(orders, topology, application_id="app")  # doctest: +ELLIPSIS
    DataFrame[topic: string, partition: int, key: binary, value: binary, headers: array<...>, ...]
    """
    check_frame(df, run_topology)
    from letterhead.state.serdes import Serde
    from letterhead.state.topology import Topology

    if not isinstance(topology, Topology):
        raise TypeError(f"topology must be a Topology, not {type(topology).__name__}")
    check_str("application_id", application_id)
    for name, serde in (("key_serde", key_serde), ("value_serde", value_serde)):
        if serde is not None and not isinstance(serde, Serde):
            raise TypeError(f"{name} must be a Serde, not {type(serde).__name__}")
    if not topology.source_topics():
        raise TopologyError("the topology has no source: add one")
    _check_stores(topology)
    return TopologyPlan(topology, application_id, _scope_of(topology), key_serde, value_serde).run(df)


@dataclass(frozen=True)
class TopologyPlan:
    """Topology with the arguments of :func:`run_topology`, and the scope of its processors."""

    topology: Topology
    application_id: str
    scope: Literal["key", "partition"]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None

    def run(self, df: DataFrame) -> DataFrame:
        """Return the records that the topology writes for a DataFrame with the columns of Spark's Kafka source."""
        not_on_sail(df.sparkSession, "run_topology", "it has no transformWithState; run it on Spark")
        if "headers" not in fields_of(df):
            df = df.withColumn("headers", F.lit(None).cast(HEADERS))
        check_types(fields_of(df), [Input(name, "records have", (type,)) for name, type in KAFKA_COLUMNS.items()])
        records = df.select(*KAFKA_COLUMNS)
        grouped = records.groupBy(self.scope)
        if not hasattr(grouped, "transformWithState"):
            raise ValueError(
                f"this needs transformWithState, which came with Spark 4.1, and this is {pyspark.__version__}"
            )
        from letterhead.spark.topology.engine import OUTPUT, TopologyProcessor, check_protobuf

        check_protobuf()
        _check_provider(df)
        records = records.withColumn("timestamp", F.unix_millis("timestamp"))
        # Headers are encoded, because workers would create an object for each element of a list, even if unused.
        packed = encode_headers(records, "kafka").select(*KAFKA_COLUMNS)
        if not df.isStreaming:
            # Listing the queries starts Spark's state coordinator, which a batch query does not start.
            list(df.sparkSession.streams.active)
        written = packed.groupBy(self.scope).transformWithState(TopologyProcessor(self), OUTPUT, "Append", "None")
        return (
            decode_headers(written, "kafka")
            .withColumn("timestamp", F.timestamp_millis("timestamp"))
            .select("topic", "partition", "key", "value", "headers", "timestamp", "changelog")
        )


def _scope_of(topology: Topology) -> Literal["key", "partition"]:
    """Return the scope of the processors of a topology; raise ``TopologyError`` if they differ or one is unknown."""
    from letterhead.state.processor import Processor
    from letterhead.state.topology import ProcessorNode, processors_of

    processors_by_scope: dict[str, list[str]] = {"key": [], "partition": []}
    for name in processors_of(topology):
        node = instance(topology.nodes[name], ProcessorNode)
        processor = node.make if isinstance(node.make, type) else node.make()
        scope = getattr(processor, "scope", Processor.scope)
        if scope not in processors_by_scope:
            raise TopologyError(f"processor {name!r} has the scope {scope!r}: set it to 'key' or 'partition'")
        processors_by_scope[scope].append(name)
    if processors_by_scope["key"] and processors_by_scope["partition"]:
        key, partition = (", ".join(processors_by_scope[scope]) for scope in ("key", "partition"))
        raise TopologyError(
            f"processors of a topology must have the same scope: 'key' has {key}; 'partition' has {partition}"
        )
    return "partition" if processors_by_scope["partition"] else "key"


def _check_stores(topology: Topology) -> None:
    from letterhead.spark.topology.stores import spark_store
    from letterhead.state.stores import Builder

    for name, builder in topology.stores.items():
        if not isinstance(builder, Builder):
            raise TopologyError(f"store {name!r} has a custom builder: on Spark use the builders of Stores")
        builder.build(spark_store)


def _check_provider(df: DataFrame) -> None:
    setting = "spark.sql.streaming.stateStore.providerClass"
    provider = df.sparkSession.conf.get(setting, "")
    if not str(provider).endswith("RocksDBStateStoreProvider"):
        rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        raise ValueError(
            f"Spark's state is stored by {provider}, and transformWithState needs RocksDB: "
            f"spark.conf.set({setting!r}, {rocksdb!r})"
        )
