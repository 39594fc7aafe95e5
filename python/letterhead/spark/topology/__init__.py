"""Run topologies of :mod:`letterhead.state` on Spark, with their stores in Spark's state: :func:`run_topology`."""

from __future__ import annotations

from letterhead.spark.topology.plan import run_topology

__all__ = ["run_topology"]
