"""Sources, processors, stores and sinks, and which is connected to which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from letterhead.state.processor import Processor
from letterhead.state.serdes import Serde
from letterhead.storage.errors import TopologyError

__all__ = ["ProcessorNode", "SinkNode", "SourceNode", "StoreBuilder", "Topology"]


class StoreBuilder:
    """Makes a store, once for each task; :class:`~letterhead.state.Stores` makes builders."""

    name: str
    logged: bool = True

    def build(self) -> Any:
        """Make the store, not yet open."""
        raise NotImplementedError


@dataclass
class SourceNode:
    """Where records come in."""

    name: str
    topics: tuple[str, ...]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    children: list[str] = field(default_factory=list)


@dataclass
class ProcessorNode:
    """Where records are handled."""

    name: str
    make: Callable[[], Processor[Any, Any, Any, Any]]
    stores: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


@dataclass
class SinkNode:
    """Where records go out."""

    name: str
    topic: str | Callable[[Any], str]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None


class Topology:
    """What an application does, before it runs anywhere.

    Every method gives this object, so that calls can be chained. Parents must be added before their children.

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
        self.stores: dict[str, StoreBuilder] = {}

    def add_source(
        self, name: str, *topics: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Self:
        """Add a node that reads topics.

        Parameters
        ----------
        name : str
            Name of the node.
        *topics : str
            What it reads; a topic can have one source only.
        key_serde, value_serde : Serde, optional
            How keys and values are read; bytes as they are by default.

        Raises
        ------
        TopologyError
            If the name is taken, there is no topic, or a topic has a source already.
        """
        if not topics:
            raise TopologyError(f"source {name!r} reads no topic: name at least one")
        for topic in topics:
            if topic in self.source_topics():
                raise TopologyError(f"topic {topic!r} has a source already")
        self._add(name, SourceNode(name, topics, key_serde, value_serde), ())
        return self

    def add_processor(self, name: str, make: Callable[[], Processor[Any, Any, Any, Any]], *parents: str) -> Self:
        """Add a node that handles records.

        Parameters
        ----------
        name : str
            Name of the node.
        make : callable
            Makes the processor, a new one for each task; mostly its class.
        *parents : str
            Nodes whose records it handles.

        Raises
        ------
        TopologyError
            If the name is taken, there is no parent, or one is not there.
        """
        if isinstance(make, Processor):
            raise TopologyError(f"processor {name!r}: give what makes the processor, such as its class, not one of it")
        if not parents:
            raise TopologyError(f"processor {name!r} has no parent: name at least one")
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
        """Add a node that writes a topic.

        Parameters
        ----------
        name : str
            Name of the node.
        topic : str or callable
            The topic, or a function from a record to it.
        *parents : str
            Nodes whose records it writes.
        key_serde, value_serde : Serde, optional
            How keys and values are written; bytes as they are by default.

        Raises
        ------
        TopologyError
            If the name is taken, there is no parent, or one is not there.
        """
        if not parents:
            raise TopologyError(f"sink {name!r} has no parent: name at least one")
        self._add(name, SinkNode(name, topic, key_serde, value_serde), parents)
        return self

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> Self:
        """Add a store, and connect it to processors.

        Parameters
        ----------
        builder : StoreBuilder
            Makes the store.
        *processors : str
            Nodes that may use it.

        Raises
        ------
        TopologyError
            If another store has the name, or a processor is not there.
        """
        if self.stores.get(builder.name, builder) is not builder:
            raise TopologyError(f"there is a store {builder.name!r} already")
        self.stores[builder.name] = builder
        for processor in processors:
            self.connect_processor_and_state_stores(processor, builder.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Self:
        """Let a processor use stores.

        Parameters
        ----------
        processor : str
            Name of the node.
        *stores : str
            Names of the stores.

        Raises
        ------
        TopologyError
            If one of them is not there.
        """
        node = self.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"there is no processor {processor!r} (processors: {_names(self.processors())})")
        for store in stores:
            if store not in self.stores:
                raise TopologyError(f"there is no store {store!r} (stores: {_names(self.stores)})")
            if store not in node.stores:
                node.stores.append(store)
        return self

    def source_topics(self) -> list[str]:
        """Give the topics that are read."""
        return [topic for node in self.nodes.values() if isinstance(node, SourceNode) for topic in node.topics]

    def sink_topics(self) -> list[str]:
        """Give the topics that are written, as far as they are fixed."""
        sinks = (node for node in self.nodes.values() if isinstance(node, SinkNode))
        return [sink.topic for sink in sinks if isinstance(sink.topic, str)]

    def processors(self) -> list[str]:
        """Give the names of the processors, parents first."""
        return [name for name, node in self.nodes.items() if isinstance(node, ProcessorNode)]

    def source_of(self, topic: str) -> SourceNode | None:
        """Give the source of a topic; ``None`` if there is none."""
        for node in self.nodes.values():
            if isinstance(node, SourceNode) and topic in node.topics:
                return node
        return None

    def _add(self, name: str, node: SourceNode | ProcessorNode | SinkNode, parents: Iterable[str]) -> None:
        if name in self.nodes:
            raise TopologyError(f"there is a node {name!r} already")
        found = []
        for parent in parents:
            above = self.nodes.get(parent)
            if above is None or isinstance(above, SinkNode):
                can = [known for known, node in self.nodes.items() if not isinstance(node, SinkNode)]
                raise TopologyError(f"{name!r} has no parent {parent!r} (nodes: {_names(can)})")
            found.append(above)
        self.nodes[name] = node
        for above in found:
            above.children.append(name)


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
