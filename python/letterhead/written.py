"""Results and errors of writing to a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from letterhead.errors import LetterheadError

__all__ = ["Appended", "DeliveryError", "Written"]


class Appended(NamedTuple):
    """A batch that the server has acknowledged.

    Attributes
    ----------
    partition : int
        Partition of the batch.
    offset : int
        The offset of its first message; -1 if a broker recognized a repeated request and did not return it.
    rows : int
        Number of messages, whose offsets are consecutive.
    """

    partition: int
    offset: int
    rows: int


class Written(NamedTuple):
    """The result of writing a table to a topic.

    Attributes
    ----------
    rows : int
        Rows written.
    batches : list of Appended
        The batches that were appended.
    """

    rows: int
    batches: list[Appended]


class DeliveryError(LetterheadError, RuntimeError):
    """Rows were not acknowledged by the brokers. All other rows are in the topic.

    Attributes
    ----------
    errors : dict of int to str
        The reason for each row, which is counted from 0 over the whole table.
    """

    def __init__(self, topic: str, errors: Mapping[int, str]) -> None:
        row, why = next(iter(errors.items()))
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(f"{topic}: row {row}{more} not delivered: {why}; write the rows in errors again")
        self.errors = dict(errors)
