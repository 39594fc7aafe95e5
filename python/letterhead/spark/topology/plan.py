"""What is checked and planned on the driver before a topology runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from letterhead.state.serdes import Serde
    from letterhead.state.topology import Topology

__all__ = ["TopologyTransform", "run_topology", "scope_of"]

# The stores are a large package, and every worker of Spark imports this module: what runs no topology needs none of them.

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_topology(
    topology: Topology,
    *,
    application_id: str,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
) -> TopologyTransform:
    """Run a topology over the records of topics, with its stores in Spark's state.

    The frame has the columns of Spark's Kafka source: ``topic``, ``partition``, ``offset``, ``timestamp``, ``key``,
    ``value`` and, with ``includeHeaders``, ``headers``. Each of its topics must have a source in the topology.

    What a store shows is for the processors to say, by their :attr:`~letterhead.state.Processor.scope`. With ``"key"``
    records are grouped by their key, the stores hold the rows of that key, and keys run side by side. With
    ``"partition"`` they are grouped by the number of their partition, and the stores hold all rows of it. Stream time is
    that of the key, or of the partition.

    Parameters
    ----------
    topology : Topology
        What to run. It travels to the workers, and so do its processors: pickled.
    application_id : str
        Name of the application; changelog topics begin with it.
    key_serde, value_serde : Serde, optional
        What is used where no serde was given; bytes as they are by default.

    Returns
    -------
    TopologyTransform
        A function from DataFrame to DataFrame, for ``df.transform``. What comes out has the columns ``topic``,
        ``partition``, ``key``, ``value``, ``headers``, ``timestamp`` and ``changelog``, which is true for changes of
        stores. These have the partition of their task; what a sink wrote has none, so that it is chosen by the key.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    TopologyError
        If processors differ in scope, or a store cannot be kept in Spark's state.
    ValueError
        When it is called, if a column is missing, Spark is older than 4.1, or its state is not in RocksDB.
    ModuleNotFoundError
        If protobuf is not installed, with which Spark's workers ask for state.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> from letterhead.state import Processor, Topology
    >>> class Copy(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record)
    >>> topology = Topology().add_source("in", "orders").add_processor("copy", Copy, "in").add_sink("out", "copies", "copy")
    >>> orders.transform(lhs.run_topology(topology, application_id="app"))  # doctest: +ELLIPSIS
    DataFrame[topic: string, partition: int, key: binary, value: binary, headers: array<...>, ...]
    """
    from letterhead.state.serdes import Serde
    from letterhead.state.topology import Topology
    from letterhead.storage.errors import TopologyError

    if not isinstance(topology, Topology):
        raise TypeError(f"topology must be a Topology, not {type(topology).__name__}")
    if not isinstance(application_id, str):
        raise TypeError(f"application_id must be str, not {type(application_id).__name__}")
    for name, serde in (("key_serde", key_serde), ("value_serde", value_serde)):
        if serde is not None and not isinstance(serde, Serde):
            raise TypeError(f"{name} must be a Serde, not {type(serde).__name__}")
    if not topology.source_topics():
        raise TopologyError("the topology has no source: add one")
    _check_stores(topology)
    return TopologyTransform(topology, application_id, scope_of(topology), key_serde, value_serde)


@dataclass(frozen=True)
class TopologyTransform:
    """A function from DataFrame to DataFrame; call it, or hand it to ``df.transform``.

    Attributes
    ----------
    topology : Topology
        What is run.
    application_id : str
        Name of the application.
    scope : {"key", "partition"}
        What a group of records is.
    key_serde, value_serde : Serde or None
        What is used where no serde was given.
    """

    topology: Topology
    application_id: str
    scope: Literal["key", "partition"]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None

    def __call__(self, df: DataFrame) -> DataFrame:
        """Plan the work on a frame.

        Parameters
        ----------
        df : DataFrame
            A frame with the columns of Spark's Kafka source.

        Returns
        -------
        DataFrame
            The records that are written.
        """
        from pyspark.sql import functions as F

        from letterhead.spark.frame import Input, check_types, fields_of
        from letterhead.spark.transforms import decode_headers, encode_headers

        columns = fields_of(df)
        check_types(columns, [Input(name, "records have", (type,)) for name, type in _COLUMNS.items()])
        if "headers" in columns:
            check_types(columns, [Input("headers", "records have", ("array<struct<key:string,value:binary>>",))])
        grouped = df.select(*_COLUMNS).groupBy(self.scope)
        if not hasattr(grouped, "transformWithState"):
            import pyspark

            raise ValueError(
                f"this needs transformWithState, which came with Spark 4.1, and this is {pyspark.__version__}"
            )
        from letterhead.spark.topology.engine import OUTPUT, TopologyProcessor, check_protobuf

        check_protobuf()
        _check_provider(df)
        headers = F.col("headers") if "headers" in columns else F.lit(None).cast(_LIST)
        records = df.select(*_COLUMNS, headers.alias("headers")).withColumn("timestamp", F.unix_millis("timestamp"))
        # As a block of bytes: on the workers each element of a list would be an object of its own, wanted or not.
        packed = records.transform(encode_headers("headers", "kafka")).select(*_COLUMNS, "headers")
        if not df.isStreaming:
            # Asked for its queries, Spark starts the keeper of states, for which a batch would look in vain.
            list(df.sparkSession.streams.active)
        processor = TopologyProcessor(self.topology, self.application_id, self.scope, self.key_serde, self.value_serde)
        written = packed.groupBy(self.scope).transformWithState(processor, OUTPUT, "Append", "None")
        return (
            written.transform(decode_headers("headers", "kafka"))
            .withColumn("timestamp", F.timestamp_millis("timestamp"))
            .select("topic", "partition", "key", "value", "headers", "timestamp", "changelog")
        )


_LIST = "array<struct<key:string,value:binary>>"
_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
}


def scope_of(topology: Topology) -> Literal["key", "partition"]:
    """Give the scope of a topology: that of its processors.

    Raises
    ------
    TopologyError
        If they differ, or one of them is neither.
    """
    from letterhead.state.processor import Processor
    from letterhead.state.topology import ProcessorNode
    from letterhead.storage.errors import TopologyError

    found: dict[str, list[str]] = {"key": [], "partition": []}
    for name in topology.processors():
        node = topology.nodes[name]
        assert isinstance(node, ProcessorNode)
        made = node.make if isinstance(node.make, type) else node.make()
        scope = getattr(made, "scope", Processor.scope)
        if scope not in found:
            raise TopologyError(f"processor {name!r} has the scope {scope!r}: there are 'key' and 'partition'")
        found[scope].append(name)
    if found["key"] and found["partition"]:
        key, partition = (", ".join(found[scope]) for scope in ("key", "partition"))
        raise TopologyError(
            f"a topology has one scope, and here processors differ: 'key' has {key}; 'partition' has {partition}"
        )
    return "partition" if found["partition"] else "key"


def _check_stores(topology: Topology) -> None:
    from letterhead.spark.topology.stores import spark_store
    from letterhead.state.stores import Builder
    from letterhead.storage.errors import TopologyError

    for name, builder in topology.stores.items():
        if not isinstance(builder, Builder):
            raise TopologyError(f"store {name!r} is of a kind of its own: on Spark there are those of Stores only")
        builder.build(spark_store)


def _check_provider(df: DataFrame) -> None:
    provider = df.sparkSession.conf.get(PROVIDER, "")
    if not str(provider).endswith("RocksDBStateStoreProvider"):
        raise ValueError(
            f"the state is kept by {provider}, and transformWithState needs RocksDB: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})"
        )
