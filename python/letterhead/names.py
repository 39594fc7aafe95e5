"""Names of formats as types, by what their bytes are: what a verb gives follows from the name.

They are the names of the table of formats, and a test holds them to it. A name that is not known before the program runs
is a ``str``, and then a verb gives what any format might.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["BatchName", "BlockName", "EnvelopeName"]

BlockName: TypeAlias = Literal["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023", "iggy-auto"]
EnvelopeName: TypeAlias = Literal[
    "streams",
    "streams-timestamped",
    "kip82-wrapper",
    "kip82-message",
    "kip82-message-int",
    "kip82-message-wrapper",
    "iggy-message-2023",
    "iggy-message",
]
BatchName: TypeAlias = Literal[
    "kip82-messages", "kip82-messages-int", "kip82-messages-wrapper", "iggy-polled-2023", "iggy-batch", "record-batch"
]
