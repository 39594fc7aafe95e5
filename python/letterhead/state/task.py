"""Run a topology on the records of one partition, for the test driver and other engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._invariants import instance
from letterhead.errors import TopologyError
from letterhead.headers import Headers
from letterhead.state.context import StoreContext, changelog_topic
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.base import chain
from letterhead.state.processor import Processor, PunctuationType, Punctuator, Record, RecordContext
from letterhead.state.serdes import serialize
from letterhead.state.topology import ProcessorNode, SinkNode, SourceNode, Topology, processors_of, source_of

if TYPE_CHECKING:
    from letterhead.state.stores import Builder

__all__ = ["TaskProgress", "Task"]


class TaskProgress(NamedTuple):
    """Progress of a task; an engine can store it to resume the task later."""

    stream_time: int
    """Largest timestamp seen so far; -1 before the first record."""
    punctuations: tuple[int, ...]
    """Next time of each punctuation scheduled in ``init``; -1 if it was cancelled."""


class Task:
    """Instance of a topology, with its stores by name in ``stores``.

    Parameters
    ----------
    topology : Topology
        The topology.
    context : StoreContext
        Context of the stores, with the names of the application and the task.
    directory : Path or None
        The directory of the task, for persistent stores; ``None`` if there are none.
    emit : callable
        Called with the topic and the serialized record for each record written by a sink.
    now : callable
        Returns the wall-clock time in milliseconds since 1970.
    build : callable, optional
        Creates the store of a builder without opening it; :meth:`Builder.build` by default.
    resumed : bool, default False
        Whether the engine stops the task and resumes it later from its :class:`TaskProgress`. If so, punctuations must be
        scheduled in ``init`` and by stream time.
    """

    def __init__(
        self,
        topology: Topology,
        context: StoreContext,
        *,
        directory: Path | None,
        emit: Callable[[str, ChangelogRecord], None],
        now: Callable[[], int],
        build: Callable[[Builder], Any] | None = None,
        resumed: bool = False,
    ) -> None:
        self.topology = topology
        self.context = context
        self.directory = directory
        self.stores: dict[str, Any] = {}
        self.stream_time = -1
        self.commit_requested = False
        self._emit = emit
        self._now = now
        self._build = build or (lambda builder: builder.build())
        self._resumed = resumed
        self._initialized = False
        self._restored: dict[str, int] = {}
        self._schedules: list[_Schedule] = []
        self._initial_schedules: list[_Schedule] = []
        self._initial_progress = TaskProgress(-1, ())
        self._nodes: dict[str, _NodeContext] = {}

    def open(self) -> None:
        """Open the stores and initialize the processors."""
        try:
            for name, builder in self.topology.stores.items():
                store = self._build(builder)
                store.open(self.directory, self.context)
                self.stores[name] = store
            for name in processors_of(self.topology):
                node = instance(self.topology.nodes[name], ProcessorNode)
                self._nodes[name] = _NodeContext(self, node)
            for context in self._nodes.values():
                context.processor.init(context)
        except BaseException:
            self._close_stores()
            raise
        self._initialized = True
        self._initial_schedules = list(self._schedules)
        self._initial_progress = self.progress()

    def progress(self) -> TaskProgress:
        """Return the progress of the task."""
        return TaskProgress(
            self.stream_time, tuple(-1 if schedule.cancelled else schedule.next for schedule in self._initial_schedules)
        )

    def resume(self, progress: TaskProgress | None) -> None:
        """Resume the task from its progress; ``None`` starts from the beginning.

        Raises
        ------
        TopologyError
            If the number of scheduled punctuations differs from that in the progress.
        """
        progress = progress or self._initial_progress
        if len(progress.punctuations) != len(self._initial_schedules):
            raise TopologyError(
                f"the processors schedule {len(self._initial_schedules)} punctuations, and the progress has "
                f"{len(progress.punctuations)}: the topology has changed, and must start from the beginning"
            )
        self.stream_time = progress.stream_time
        self._schedules = list(self._initial_schedules)
        for schedule, time in zip(self._initial_schedules, progress.punctuations, strict=True):
            schedule.next, schedule.cancelled = time, time < 0

    def process(self, topic: str, partition: int, offset: int, record: ChangelogRecord) -> None:
        """Process a serialized record from an offset of a partition.

        Raises
        ------
        TopologyError
            If the topic has no source.
        """
        source = source_of(self.topology, topic)
        if source is None:
            raise TopologyError(f"topic {topic!r} has no source (topics: {', '.join(self.topology.source_topics())})")
        headers = record.headers
        key = (source.key_serde or self.context.key_serde).deserialize(topic, headers, record.key)
        value = (source.value_serde or self.context.value_serde).deserialize(topic, headers, record.value)
        self.stream_time = max(self.stream_time, record.timestamp)
        self.context.record = RecordContext(topic, partition, offset, record.timestamp, headers)
        try:
            self._forward(source, Record(key, value, record.timestamp, headers))
            self._punctuate("stream_time", self.stream_time)
        finally:
            self.context.record = None

    def punctuate_wall_clock(self) -> None:
        """Call the punctuations that are due by wall-clock time."""
        self._punctuate("wall_clock_time", self._now())

    def commit(self) -> None:
        """Flush the caches, and store the changelog offsets."""
        self.commit_requested = False
        for store in self.stores.values():
            store.flush()
        written = self.context.changelog.offsets()
        for name, store in self.stores.items():
            store.commit(self._offsets(name, store, written))

    def restore(self, name: str, records: Iterable[ChangelogRecord]) -> None:
        """Restore a store from all records of its changelog."""
        records = list(records)
        self.stores[name].restore(records)
        if records:
            self._restored[name] = len(records) - 1

    def close(self) -> None:
        """Close the processors, commit, and close the stores."""
        try:
            for context in self._nodes.values():
                context.processor.close()
            if all(store.is_open for store in self.stores.values()):
                self.commit()
        finally:
            self._nodes.clear()
            self._close_stores()

    def _close_stores(self) -> None:
        failed: BaseException | None = None
        for store in self.stores.values():
            try:
                store.close()
            except Exception as error:  # close the other stores before raising
                failed = failed or error
        if failed is not None:
            raise failed

    def _offsets(self, name: str, store: Any, written: dict[tuple[str, int], int]) -> dict[tuple[str, int], Any]:
        """Return the offset of the last record in a store's changelog; empty without a changelog."""
        if not self.topology.stores[name].logged:
            return {}
        changelog = changelog_topic(self.context.application_id, name), self.context.partition
        if changelog in written:
            return {changelog: written[changelog]}
        if name in self._restored:
            return {changelog: self._restored[name]}
        bottom = chain(store)[-1]
        committed: dict[str, int] = bottom.committed_offsets() if bottom.persistent else {}
        return {changelog: committed.get(f"{changelog[0]}-{changelog[1]}")}

    def _forward(self, node: SourceNode | ProcessorNode, record: Record[Any, Any], child: str | None = None) -> None:
        if child is not None and child not in node.children:
            raise TopologyError(
                f"{node.name!r} has no child {child!r} (children: {', '.join(node.children) or 'none'})"
            )
        context = self.context
        before = context.record
        if before is None:
            context.record = RecordContext(timestamp=record.timestamp, headers=record.headers)
        elif record.timestamp != before.timestamp or record.headers is not before.headers:
            context.record = RecordContext(
                before.topic, before.partition, before.offset, record.timestamp, record.headers
            )
        try:
            for name in node.children if child is None else [child]:
                below = self.topology.nodes[name]
                if isinstance(below, SinkNode):
                    self._write(below, record)
                else:
                    self._nodes[name].processor.process(record)
        finally:
            context.record = before

    def _write(self, sink: SinkNode, record: Record[Any, Any]) -> None:
        topic = sink.topic if isinstance(sink.topic, str) else sink.topic(record)
        headers = Headers(record.headers)
        key = serialize(sink.key_serde or self.context.key_serde, topic, headers, record.key, "key")
        value = serialize(sink.value_serde or self.context.value_serde, topic, headers, record.value, "value")
        self._emit(topic, ChangelogRecord(key, value, record.timestamp, headers))  # type: ignore[arg-type]

    def _punctuate(self, type: PunctuationType, now: int) -> None:
        due = True
        while due:
            due = False
            for schedule in sorted(self._schedules, key=lambda schedule: schedule.next):
                if schedule.type == type and not schedule.cancelled and schedule.next <= now:
                    due = True
                    schedule.after(now)
                    self.context.record = RecordContext(timestamp=now)
                    try:
                        schedule.call(now)
                    finally:
                        self.context.record = None
            self._schedules = [schedule for schedule in self._schedules if not schedule.cancelled]


@dataclass(eq=False)
class _Schedule:
    """Scheduled punctuation."""

    type: PunctuationType
    next: int
    interval: int
    call: Punctuator
    cancelled: bool = False

    def cancel(self) -> None:
        """Stop the punctuation."""
        self.cancelled = True

    def after(self, now: int) -> None:
        """Set the next time after ``now``; missed times are skipped."""
        self.next += self.interval * ((now - self.next) // self.interval + 1)


class _NodeContext:
    """The :class:`ProcessorContext` of a node."""

    def __init__(self, task: Task, node: ProcessorNode) -> None:
        self.task = task
        self.node = node
        self.processor: Processor[Any, Any, Any, Any] = node.make()

    @property
    def application_id(self) -> str:
        return self.task.context.application_id

    @property
    def task_id(self) -> str:
        return self.task.context.task_id

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        self.task._forward(self.node, record, child)

    def get_state_store(self, name: str) -> Any:
        if name not in self.node.stores:
            known = ", ".join(self.node.stores) or "none"
            raise TopologyError(f"processor {self.node.name!r} is not connected to a store {name!r} (stores: {known})")
        return self.task.stores[name]

    def schedule(self, interval_ms: int, type: PunctuationType, punctuator: Punctuator) -> _Schedule:
        if interval_ms < 1:
            raise ValueError(f"the interval of a punctuation must be at least 1 ms, not {interval_ms}")
        if type not in ("stream_time", "wall_clock_time"):
            raise ValueError(f"the type of a punctuation must be 'stream_time' or 'wall_clock_time', not {type!r}")
        if self.task._resumed:
            self._check_resumable(type)
        # By stream time, the first punctuation is due at the first record; later times are multiples of the interval.
        first = 0 if type == "stream_time" else self.task._now() + interval_ms
        schedule = _Schedule(type, first, interval_ms, punctuator)
        self.task._schedules.append(schedule)
        return schedule

    def record_context(self) -> RecordContext | None:
        return self.task.context.record

    def _check_resumable(self, type: PunctuationType) -> None:
        if type == "wall_clock_time":
            raise TopologyError(
                f"processor {self.node.name!r} schedules a punctuation by wall_clock_time, but this engine runs processors "
                "only when records arrive: schedule it by stream_time"
            )
        if self.task._initialized:
            raise TopologyError(
                f"processor {self.node.name!r} schedules a punctuation after init, but this engine cannot resume it with "
                "the next records: schedule it in init"
            )

    def commit(self) -> None:
        self.task.commit_requested = True

    def current_stream_time_ms(self) -> int:
        return self.task.stream_time

    def current_system_time_ms(self) -> int:
        return self.task._now()
