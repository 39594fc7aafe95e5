"""Column families of each type of store, including its older versions.

Every database has the families ``default``, required by RocksDB, and ``offsets``. Rows of plain stores are in
``default``; newer row formats have their own families, so that older versions of a store cannot misread them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from letterhead.errors import ProcessorStateError, UnexpectedColumnFamilyError
from letterhead.state.storage.raw import NO_TIMESTAMP
from letterhead.state.storage.versioned_rows import with_headers

__all__ = [
    "HEADERS",
    "LAYOUTS",
    "PLAIN",
    "SESSION_HEADERS",
    "TIMESTAMPED",
    "TIME_ORDERED_HEADERS",
    "TIME_ORDERED_SESSION",
    "VERSIONED_HEADERS",
    "Layout",
]

Convert: TypeAlias = Callable[[bytes, bytes], bytes]
"""Function that returns the newer value for a key and its older value."""

DEFAULT = "default"
OFFSETS = "offsets"
WITH_TIMESTAMP = "keyValueWithTimestamp"
WITH_HEADERS = "keyValueWithTimestampAndHeaders"


class Legacy(NamedTuple):
    """Column family with rows of an older version of a store.

    Attributes
    ----------
    family : str
        Name of the family.
    convert : callable
        Function that converts a value to the newer form.
    dropped : bool
        Whether the family is opened only if it exists, and dropped once it is empty.
    """

    family: str
    convert: Convert
    dropped: bool = False


class Layout(NamedTuple):
    """Column families of a type of store.

    Attributes
    ----------
    family : str
        The family of the rows.
    legacy : tuple of Legacy
        Families of older rows, oldest last. Rows move to ``family`` when they are read or written.
    version : int or None
        Format version, stored in the offsets family, for formats that Kafka Streams may define differently in the
        future.
    """

    family: str
    legacy: tuple[Legacy, ...] = ()
    version: int | None = None

    @property
    def families(self) -> list[str]:
        """Families of the store, except those that are opened only if they exist."""
        return list(dict.fromkeys([DEFAULT, self.family, OFFSETS]))

    def check(self, store: str, existing: list[str]) -> list[str]:
        """Return the families to open in a database, given its existing families.

        Raises
        ------
        UnexpectedColumnFamilyError
            If a family belongs to another type of store.
        """
        expected = [*self.families, *(legacy.family for legacy in self.legacy if legacy.family in existing)]
        for family in existing:
            if family not in expected:
                raise UnexpectedColumnFamilyError(self._refusal(store, family), store, family)
        return list(dict.fromkeys(expected))

    def check_version(self, store: str, stored: int | None) -> None:
        """Raise ProcessorStateError if a database has another format version; a database without a version has the first."""
        if self.version is not None and stored not in (None, self.version):
            raise ProcessorStateError(
                f"store {store} has version {stored} of its format, and this version of letterhead reads {self.version}: "
                "use the version that wrote it; nothing was changed"
            )

    def _refusal(self, store: str, family: str) -> str:
        if family == WITH_TIMESTAMP:
            return (
                f"Store {store} is a timestamped key-value store and cannot be opened as a regular key-value store. "
                "Downgrade from timestamped to regular store is not supported directly. To downgrade, you can delete the "
                "local state in the state directory, and rebuild the store as regular key-value store from the changelog."
            )
        if family == WITH_HEADERS and self.family == WITH_TIMESTAMP:
            return (
                f"Store {store} is a headers-aware store and cannot be opened as a timestamped store. Downgrade from "
                "headers-aware to timestamped store is not supported. To downgrade, you can delete the local state in the "
                "state directory, and rebuild the store as timestamped store from the changelog."
            )
        if family == WITH_HEADERS:
            return (
                f"Store {store} is a headers-aware store and cannot be opened as a regular key-value store. Downgrade "
                "from headers-aware to regular store is not supported."
            )
        return (
            f"Unexpected column family '{family}' found in store {store}. The store may have been created with "
            "incompatible settings."
        )


def mixed_formats_error(store: str) -> ProcessorStateError:
    """Return the error for a database with rows of two older versions of a store."""
    return ProcessorStateError(
        f"Inconsistent store state for {store}. Cannot have both plain (DEFAULT) and timestamped data simultaneously. "
        "Headers store can upgrade from either plain or timestamped format, but not both."
    )


def _return_value(key: bytes, value: bytes) -> bytes:
    return value


def _prefix(prefix: bytes, key: bytes, value: bytes) -> bytes:
    return prefix + value


_ADD_TIMESTAMP, _ADD_HEADERS, _ADD_BOTH = (
    partial(_prefix, prefix) for prefix in (NO_TIMESTAMP, b"\0", b"\0" + NO_TIMESTAMP)
)


PLAIN = Layout(DEFAULT)
"""Plain rows of any store, and rows of time-ordered stores without headers."""

TIMESTAMPED = Layout(WITH_TIMESTAMP, (Legacy(DEFAULT, _ADD_TIMESTAMP),))
"""Key-value and window stores with timestamps."""

HEADERS = Layout(WITH_HEADERS, (Legacy(WITH_TIMESTAMP, _ADD_HEADERS, dropped=True), Legacy(DEFAULT, _ADD_BOTH)))
"""Key-value and window stores with timestamps and headers."""

SESSION_HEADERS = Layout("sessionKeyValueWithHeaders", (Legacy(DEFAULT, _ADD_HEADERS),))
"""Session stores with headers."""

TIME_ORDERED_SESSION = Layout(SESSION_HEADERS.family, (Legacy(DEFAULT, _return_value),))
"""Time-ordered session stores of applications with headers. Kafka Streams 4.3 and 4.4 use the family of session stores
with headers, but write aggregations without headers into it."""

TIME_ORDERED_HEADERS = Layout("windowKeyValueWithHeaders", (Legacy(DEFAULT, _ADD_HEADERS),))
"""Time-ordered window stores with headers; older rows have timestamps."""

VERSIONED_HEADERS = Layout("versionedKeyValueWithHeaders", (Legacy(DEFAULT, with_headers),), version=1)
"""Versioned stores with headers, which Kafka Streams does not support yet; its future format may differ."""

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("key-value", "plain"): PLAIN,
    ("key-value", "timestamped"): TIMESTAMPED,
    ("key-value", "headers"): HEADERS,
    ("window", "plain"): PLAIN,
    ("window", "timestamped"): TIMESTAMPED,
    ("window", "headers"): HEADERS,
    ("session", "plain"): PLAIN,
    ("session", "headers"): SESSION_HEADERS,
    ("time-ordered-window", "plain"): PLAIN,
    ("time-ordered-window", "timestamped"): PLAIN,
    ("time-ordered-window", "headers"): TIME_ORDERED_HEADERS,
    ("time-ordered-session", "plain"): PLAIN,
    ("time-ordered-session", "headers"): TIME_ORDERED_SESSION,
    ("versioned", "plain"): PLAIN,
    ("versioned", "headers"): VERSIONED_HEADERS,
}
"""Column families of each type of store, by the name of the layout."""
