"""The daemon that forks the Python workers of Spark, with the packages imported that they all need.

Spark's own daemon forks workers that import everything anew: a second of processor time, after each test whose query fails.
Daemons import nothing because a package may start threads, which a fork does not copy; this one turns these off.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"

import pandas  # noqa: F401
import psutil
import pyspark.sql.pandas.serializers
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import letterhead.spark  # noqa: F401

if __name__ == "__main__":
    if psutil.Process().num_threads() > 1:
        raise RuntimeError("a package that workers import has started threads")
    manager()
