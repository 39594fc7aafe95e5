"""What commands read: topics, log segments, state directories and tables, each named by one argument, as record batches.

:func:`open_sources` turns arguments into :class:`~letterhead.cli.sources.base.Source` objects.
"""

from letterhead.cli.sources.recognition import open_sources

__all__ = ["open_sources"]
