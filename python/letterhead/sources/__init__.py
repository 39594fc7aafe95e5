"""Topics, log segments, state directories and tables, each named by one text, as streams of record batches.

:func:`~letterhead.sources.recognition.open_sources` turns names into :class:`~letterhead.sources.base.Source` objects;
:func:`letterhead.open` returns the reader of one.
"""
