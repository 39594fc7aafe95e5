"""Print the depth of the message that Spark Connect sends for each column of ``header``: `python connect_depths.py`.

Each line has the depth and the column. No server is needed.
"""

from __future__ import annotations

import os
from typing import Any

os.environ |= {"SPARK_REMOTE": "sc://127.0.0.1:1", "SPARK_CONNECT_MODE_ENABLED": "1"}

from letterhead import spark as lhs
from letterhead.types import SELECT_TYPES

TYPES = [*SELECT_TYPES, "decimal(38,9):text", "int64 | int64:text"]


def depth(message: Any) -> int:
    fields = (value for field, value in message.ListFields() if field.message_type is not None)
    parts = (part for value in fields for part in (value if hasattr(value, "__len__") else [value]))
    return 1 + max(map(depth, parts), default=0)


def main() -> None:
    for format in ("kafka", "iggy", "kip82-int", "kip82-typed"):
        key: Any = 3 if format == "kip82-int" else "k"
        for type in TYPES:
            for repeat in ("last", "all"):
                for errors in ("raise", "null"):
                    column: Any = lhs.header(
                        "h", key, type, format=format, repeat=repeat, errors=errors, engine="spark"
                    )
                    print(depth(column.to_plan(None)), format, type, repeat, errors)


if __name__ == "__main__":
    main()
