"""Topologies: sources, processors, stores and sinks, and the connections between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from letterhead.errors import TopologyError
from letterhead.state.processor import Processor
from letterhead.state.serdes import Serde

if TYPE_CHECKING:
    from letterhead.state.stores import Builder

__all__ = ["ProcessorNode", "SinkNode", "SourceNode", "Topology", "processors_of", "source_of"]


@dataclass
class SourceNode:
    """Node that reads topics."""

    name: str
    topics: tuple[str, ...]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    children: list[str] = field(default_factory=list)


@dataclass
class ProcessorNode:
    """Node that processes records."""

    name: str
    make: Callable[[], Processor[Any, Any, Any, Any]]
    stores: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


@dataclass
class SinkNode:
    """Node that writes to a topic."""

    name: str
    topic: str | Callable[[Any], str]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None


class Topology:
    """Graph of the nodes and stores of an application.

    The ``add_`` methods change the topology and return it, so that calls can be chained. Parents must be added before
    their children. Adding an existing name, or referring to a name that does not exist, raises
    :class:`TopologyError`.

    Examples
    --------
    >>> from letterhead.state import Processor, Topology
    >>> class Copy(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record)
    >>> topology = Topology().add_source("in", "orders").add_processor("copy", Copy, "in").add_sink("out", "copies", "copy")
    >>> topology.nodes["in"].children, topology.source_topics()
    (['copy'], ['orders'])
    """

    def __init__(self) -> None:
        self.nodes: dict[str, SourceNode | ProcessorNode | SinkNode] = {}
        self.stores: dict[str, Builder] = {}

    def add_source(
        self, name: str, *topics: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Self:
        """Add a node that reads topics.

        Parameters
        ----------
        name : str
            Name of the node.
        *topics : str
            At least one topic; a topic can have only one source.
        key_serde, value_serde : Serde, optional
            Serdes of keys and values; by default the serdes of the task.
        """
        if not topics:
            raise TopologyError(f"source {name!r} has no topic: pass at least one")
        for topic in topics:
            if topic in self.source_topics():
                raise TopologyError(f"topic {topic!r} already has a source")
        self._add(name, SourceNode(name, topics, key_serde, value_serde), ())
        return self

    def add_processor(self, name: str, make: Callable[[], Processor[Any, Any, Any, Any]], *parents: str) -> Self:
        """Add a node that processes records.

        Parameters
        ----------
        name : str
            Name of the node.
        make : callable
            Creates the processor for each task; usually its class.
        *parents : str
            Names of at least one node; the processor receives the records that these nodes forward.
        """
        if isinstance(make, Processor):
            raise TopologyError(f"processor {name!r}: pass its class, or a function that creates it, not an instance")
        if not parents:
            raise TopologyError(f"processor {name!r} has no parent: pass at least one")
        self._add(name, ProcessorNode(name, make), parents)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Callable[[Any], str],
        *parents: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> Self:
        """Add a node that writes to a topic, or to the topic that a function returns for a record.

        The other parameters are as in :meth:`add_processor` and :meth:`add_source`.
        """
        if not parents:
            raise TopologyError(f"sink {name!r} has no parent: pass at least one")
        self._add(name, SinkNode(name, topic, key_serde, value_serde), parents)
        return self

    def add_state_store(self, builder: Builder, *processors: str) -> Self:
        """Add a store, and connect it to the named processors."""
        if self.stores.get(builder.name, builder) is not builder:
            raise TopologyError(f"store {builder.name!r} already exists")
        self.stores[builder.name] = builder
        for processor in processors:
            self.connect_processor_and_state_stores(processor, builder.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Self:
        """Connect a processor to stores, given their names."""
        node = self.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"there is no processor {processor!r} (processors: {_names(processors_of(self))})")
        for store in stores:
            if store not in self.stores:
                raise TopologyError(f"there is no store {store!r} (stores: {_names(self.stores)})")
            if store not in node.stores:
                node.stores.append(store)
        return self

    def source_topics(self) -> list[str]:
        """Return the names of all topics with a source."""
        return [topic for node in self.nodes.values() if isinstance(node, SourceNode) for topic in node.topics]

    def _add(self, name: str, node: SourceNode | ProcessorNode | SinkNode, parents: Iterable[str]) -> None:
        if name in self.nodes:
            raise TopologyError(f"node {name!r} already exists")
        parent_nodes = []
        for parent in parents:
            above = self.nodes.get(parent)
            if above is None or isinstance(above, SinkNode):
                possible = [known for known, node in self.nodes.items() if not isinstance(node, SinkNode)]
                raise TopologyError(f"node {name!r}: there is no parent {parent!r} (nodes: {_names(possible)})")
            parent_nodes.append(above)
        self.nodes[name] = node
        for above in parent_nodes:
            above.children.append(name)


def processors_of(topology: Topology) -> list[str]:
    """Return the names of the processors, parents first."""
    return [name for name, node in topology.nodes.items() if isinstance(node, ProcessorNode)]


def source_of(topology: Topology, topic: str) -> SourceNode | None:
    """Return the source of a topic, or ``None`` if there is none."""
    for node in topology.nodes.values():
        if isinstance(node, SourceNode) and topic in node.topics:
            return node
    return None


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
