"""Processors, which an application writes, and the context in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from letterhead.state.record import Record, RecordContext

__all__ = ["Cancellable", "Processor", "ProcessorContext", "PunctuationType", "Punctuator"]

KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")

PunctuationType: TypeAlias = Literal["stream_time", "wall_clock_time"]
Punctuator: TypeAlias = Callable[[int], None]


class Cancellable(Protocol):
    """A scheduled punctuation, as :meth:`ProcessorContext.schedule` returns it."""

    def cancel(self) -> None:
        """Stop the punctuation."""


class ProcessorContext(Protocol):
    """The context in which a processor runs."""

    @property
    def application_id(self) -> str:
        """Name of the application."""

    @property
    def task_id(self) -> str:
        """Name of the task, ``<subtopology>_<partition>``."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Pass a record to the children of this processor, or to one of them by name."""

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor."""

    def schedule(self, interval_ms: int, type: PunctuationType, punctuator: Punctuator) -> Cancellable:
        """Call a function periodically with the current time, in milliseconds since 1970."""

    def record_context(self) -> RecordContext | None:
        """Return the origin of the current record; ``None`` in :meth:`Processor.init`."""

    def commit(self) -> None:
        """Request a commit after this record."""

    def current_stream_time_ms(self) -> int:
        """Return the greatest timestamp seen so far; -1 before the first record."""

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time, in milliseconds since 1970."""


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """A step of a topology that handles one record at a time.

    Attributes
    ----------
    scope : {"key", "partition"}, default "key"
        The rows of a store that the processor sees in an engine that runs keys in parallel: those of the record's key, or
        those of the whole partition. An engine that runs whole partitions, such as the test driver, shows all rows.
    context : ProcessorContext
        The context of the processor; set by :meth:`init`.

    Examples
    --------
    >>> from letterhead.state import Processor
    >>> class Upper(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    """

    scope: ClassVar[Literal["key", "partition"]] = "key"
    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Prepare the processor; override it to get stores from the context."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Process one record."""
        raise NotImplementedError(f"{type(self).__name__} does not process records: define process")

    def close(self) -> None:
        """Release what :meth:`init` acquired; the engine closes the stores."""
