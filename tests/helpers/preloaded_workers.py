"""The daemon that forks the Python workers of Spark, with the packages imported that they all need.

Spark's own daemon forks workers that import everything anew: a second of processor time, after each test whose query fails.
Daemons import nothing because a package may start threads, which a fork does not copy; this one turns these off.
What a worker's Python does not have, the worker reports.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"

from pyspark.daemon import manager

for name in ("pandas", "pyspark.sql.pandas.serializers", "pyspark.worker", "letterhead.spark"):
    with suppress(ImportError):
        importlib.import_module(name)


def check_threads() -> None:
    """Raise RuntimeError if there are threads that a fork would not copy."""
    with suppress(ImportError):
        import psutil

        if psutil.Process().num_threads() > 1:
            raise RuntimeError("a package that workers import has started threads")


if __name__ == "__main__":
    check_threads()
    manager()
