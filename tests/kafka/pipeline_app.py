"""The streams of `docs/how-to/set-bad-rows-aside.md` in a process that can be killed: `python pipeline_app.py BROKER PREFIX STATE ROWS`."""

from __future__ import annotations

import faulthandler
import sys

from tests.kafka.page import Page

LIMIT = 300


def main(address: str, prefix: str, state: str, rows_per_batch: int) -> None:
    page = Page(address, prefix)
    names: dict = {}
    exec(page.session, names)
    queries = page.define(names["spark"])["stream"](state, rows_per_batch)
    for query in queries:
        query.awaitTermination()
    names["spark"].stop()


if __name__ == "__main__":
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    main(*sys.argv[1:4], int(sys.argv[4]))
