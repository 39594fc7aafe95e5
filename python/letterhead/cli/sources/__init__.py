"""Sources for commands: :func:`open_sources` opens those of :mod:`letterhead.sources` that arguments name."""

from letterhead.cli.sources.opening import open_sources

__all__ = ["open_sources"]
