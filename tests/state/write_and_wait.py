"""Writes rows to a store of ours whose write-ahead log is on, says so, and waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import letterhead as lh
from letterhead.state import SessionKey
from letterhead.state.rocksdb import RocksDBKeyValueStore, RocksDBSessionStore, RocksDBWindowStore
from letterhead.state.storage.database import RocksDBOptions
from tests.state.operations import config_of, puts
from tests.state.traces import headers_of, unhex

LOGGED = RocksDBOptions(write_ahead_log=True)


def main(task: str, family: str, count: str) -> None:
    config = config_of(family)
    times = config["retention_ms"], config["window_size_ms"]
    store: Any = {
        "kv": lambda: RocksDBKeyValueStore("store", options=LOGGED),
        "window": lambda: RocksDBWindowStore("store", *times, options=LOGGED),
        "session": lambda: RocksDBSessionStore("store", times[0], options=LOGGED),
    }[family]()
    store.open(Path(task))
    for _, ops in puts(config, int(count)):
        for op in ops:
            key, stored = unhex(op["key"]), op["value"]
            headers = headers_of(stored["headers"])
            if family == "session":
                message = lh.Message(headers=headers, payload=unhex(stored["aggregation"]))
                store.put(SessionKey(key, int(op["start"]), int(op["end"])), lh.encode(message, "streams"))
                continue
            timestamp = int(stored["timestamp"])
            message = lh.Message(headers=headers, timestamp=timestamp, payload=unhex(stored["value"]))
            start = (int(op["start"]),) if family == "window" else ()
            store.put(key, lh.encode(message, "streams-timestamped"), *start)
    print(count, "written", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
