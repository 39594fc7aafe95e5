"""Public methods of Kafka Streams' stores without a counterpart here, as docs/reference/streams-api.md lists them.

With LETTERHEAD_WRITE=1 they are written to docs/state-api.json, from which the page has its table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import Any

import pytest

import letterhead.state as ours
from letterhead.state import Stores
from tests.versions import REFERENCE, ROOT, built, check_built

pytestmark = pytest.mark.jvm

TABLE = ROOT / "docs" / "state-api.json"
PACKAGES = ("org.apache.kafka.streams.state", "org.apache.kafka.streams.query")

# What every object of Java has, or every one of Python by a protocol.
COMMON = {"equals", "hashCode", "toString", "valueOf", "values"}

# Suppliers and builders, with the attributes that they get when they are made.
SUPPLIER = Stores.persistent_timestamped_key_value_store_with_headers("store")
BUILDER = Stores.timestamped_key_value_store_with_headers_builder(SUPPLIER)

# Overloads of Java, and attributes, that have a name of their own here.
NAMES = {"backwardFetch": "backward_fetch_key", "loggingEnabled": "logged"}

# Classes with other names here, or whose methods a subclass has.
CLASSES: dict[str, list[Any]] = {
    "KeyValueIterator": [ours.StoreIterator],
    "WindowStoreIterator": [ours.StoreIterator],
    "VersionedRecordIterator": [ours.StoreIterator],
    "ReadOnlyRecordIterator": [ours.StoreIterator],
    "ReadOnlyKeyValueStore": [ours.KeyValueStore],
    "ReadOnlyWindowStore": [ours.WindowStore],
    "ReadOnlySessionStore": [ours.ReadOnlySessionStore, ours.SessionStore],
    "StoreBuilder": [BUILDER],
    "StoreSupplier": [SUPPLIER],
    "KeyValueBytesStoreSupplier": [SUPPLIER],
    "WindowBytesStoreSupplier": [SUPPLIER],
    "SessionBytesStoreSupplier": [SUPPLIER],
    "VersionedBytesStoreSupplier": [SUPPLIER],
}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().replace("_ms", "")


def public_api() -> dict[str, list[str]]:
    programs = built("jvm-tests", REFERENCE)
    check_built(programs)
    java = [shutil.which("java") or "java", "-cp", f"{programs / 'classes'}:{programs / 'lib'}/*"]
    done = subprocess.run(
        [*java, "letterhead.testing.streams.PublicApi", *PACKAGES],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    classes: dict[str, list[str]] = json.loads(done.stdout)
    return classes


def missing(classes: dict[str, list[str]]) -> dict[str, list[str]]:
    lacking = {}
    for name, methods in classes.items():
        counterparts = CLASSES.get(name) or [getattr(ours, name, None)]
        names = {attribute for counterpart in counterparts for attribute in dir(counterpart)}
        lacking[name] = [
            method for method in methods if method not in COMMON and not names & {snake(method), NAMES.get(method)}
        ]
    return {name: methods for name, methods in lacking.items() if methods}


def test_methods_without_a_counterpart_are_listed() -> None:
    classes = public_api()
    assert {"KeyValueStore", "ReadOnlyRecordIterator", "TimestampedKeyWithHeadersQuery"} <= classes.keys()
    lacking = missing(classes)
    if os.environ.get("LETTERHEAD_WRITE"):
        TABLE.write_text(json.dumps(lacking, indent=1) + "\n", encoding="utf-8")
    assert lacking == json.loads(TABLE.read_text(encoding="utf-8"))


def test_stores_with_headers_have_all_java_methods() -> None:
    lacking = missing(public_api())
    complete = {"KeyValueStore", "WindowStore", "SessionStore", "ReadOnlySessionStore", "ValueTimestampHeaders"}
    assert {name: methods for name, methods in lacking.items() if name in complete and methods != ["readOnly"]} == {}
