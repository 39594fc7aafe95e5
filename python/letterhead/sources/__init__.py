"""Topics, log segments, state directories and tables as streams of record batches, each named by one string.

:func:`~letterhead.sources.recognition.open_sources` converts names to :class:`~letterhead.sources.base.Source` objects;
:func:`letterhead.open` returns the reader of one.
"""
