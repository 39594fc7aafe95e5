"""Topologies of :mod:`letterhead.state` on Spark: their stores are in Spark's own state store."""

from __future__ import annotations

from letterhead.spark.topology.plan import run_topology

__all__ = ["run_topology"]
