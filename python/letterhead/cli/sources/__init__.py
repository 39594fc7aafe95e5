"""What commands read: the sources of :mod:`letterhead.sources`, as arguments name them (:func:`open_sources`)."""

from letterhead.cli.sources.opening import open_sources

__all__ = ["open_sources"]
