"""Which rows a command is about: the stores that were meant, the keys that were asked for, and what can go wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, Failure
from letterhead.cli.source import reason
from letterhead.errors import (
    DamagedRowError,
    PrefixError,
    ProcessorStateError,
    StoreChoiceError,
    StoreLockedError,
    StoreNotFoundError,
    UnexpectedColumnFamilyError,
)
from letterhead.limits import Limits
from letterhead.read.state_directory import Found
from letterhead.read.state_rows import INDEX, Store, open_store
from letterhead.read.store_types import StoreType
from letterhead.storage.keys import MAX_TIME, SessionKeys, WindowKeys, increment


class Range(NamedTuple):
    """Keys that are asked for; both bounds are included.

    Attributes
    ----------
    first, last : bytes or None
        The bounds.
    prefix : bytes
        What the keys begin with.
    """

    first: bytes | None = None
    last: bytes | None = None
    prefix: bytes = b""

    def __contains__(self, key: object) -> bool:
        return (
            isinstance(key, bytes)
            and key.startswith(self.prefix)
            and (self.first is None or key >= self.first)
            and (self.last is None or key <= self.last)
        )

    def stored(self, kind: StoreType) -> tuple[bytes | None, bytes | None]:
        """Give stored keys of a kind between which those are, and others too."""
        if kind.time_ordered:
            return b"\0", INDEX
        if kind.keys == "versioned":
            return None, None
        first, last = self.first, self.last
        if self.prefix:
            first = self.prefix
            try:
                last = increment(self.prefix)
            except PrefixError:
                last = None
        if kind.keys == "key-value":
            return first, last
        schema = WindowKeys if kind.keys == "window" else SessionKeys
        return schema.between(first, last, 0, MAX_TIME)


def one_name(found: list[Found], given: Path) -> list[Found]:
    """Refuse stores of several names; those of one name are the parts of one store.

    Raises
    ------
    Failure
        If there are several names.
    """
    names = sorted({store.name for store in found})
    if len(names) > 1:
        raise Failure(f"there are several stores in {given}: say which with --store: {', '.join(names)}")
    return found


def opened(found: Found, said: str | None = None, values: str | None = None, limits: Limits | None = None) -> Store:
    """Tell what a store is; say on stderr what is assumed, and who has it open.

    Raises
    ------
    UnexpectedColumnFamilyError
        If it is none.
    """
    store = open_store(found, said, values, limits)
    if store.type.assumed:
        warn(f"{store.assumption} (--store-type and --values say it)")
    if store.process is not None:
        warn(store.unwritten)
    return store


def warn(message: str) -> None:
    """Say something on stderr."""
    print(f"letterhead: {printable(message)}", file=sys.stderr)


@contextmanager
def failures() -> Iterator[None]:
    """Make of what can go wrong with a directory the end of the command: a line that says what, where, what to do.

    Raises
    ------
    Failure
        Instead of what was raised.
    """
    try:
        yield
    except (StoreNotFoundError, StoreChoiceError) as error:
        raise Failure(str(error)) from error
    except (UnexpectedColumnFamilyError, DamagedRowError) as error:
        raise Failure(str(error), FAULTS) from error
    except StoreLockedError as error:
        raise Failure(f"{error}. Stop that process, or look at the store without changing it") from error
    except ProcessorStateError as error:
        raise Failure(str(error), FAULTS) from error
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot read {error.filename}: {reason(error)}") from error
