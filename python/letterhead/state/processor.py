"""What an application writes: processors, and what they may ask of where they run."""

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
    """What :meth:`ProcessorContext.schedule` gives."""

    def cancel(self) -> None:
        """Let the punctuation not come again."""


class ProcessorContext(Protocol):
    """What a processor may ask of where it runs."""

    @property
    def application_id(self) -> str:
        """Name of the application."""

    @property
    def task_id(self) -> str:
        """Name of the task, ``<subtopology>_<partition>``."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Hand a record to the children of this processor, or to one of them by name."""

    def get_state_store(self, name: str) -> Any:
        """Give a store that is connected to this processor."""

    def schedule(self, interval_ms: int, type: PunctuationType, punctuator: Punctuator) -> Cancellable:
        """Call a function again and again, as time goes on; it is given the time."""

    def record_context(self) -> RecordContext | None:
        """Give the place of the record at hand; ``None`` in :meth:`Processor.init`."""

    def commit(self) -> None:
        """Ask for a commit after this record."""

    def current_stream_time_ms(self) -> int:
        """Give the greatest timestamp seen so far; -1 before the first record."""

    def current_system_time_ms(self) -> int:
        """Give the time of day, in milliseconds since 1970."""


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """A step of a topology that handles one record at a time.

    Attributes
    ----------
    scope : {"key", "partition"}, default "key"
        What of a store the processor sees where it is run in parallel: the rows of the record's key, or those of the
        whole partition. An engine that has the whole partition at hand anyway, as the test driver has, shows it all.
    context : ProcessorContext
        Where the processor runs; set by :meth:`init`.

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
        """Get ready; a subclass that overrides this gets its stores here."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Handle one record."""
        raise NotImplementedError(f"{type(self).__name__} does not say what to do with a record: define process")

    def close(self) -> None:
        """Let go of what :meth:`init` took; stores are closed by who opened them."""
