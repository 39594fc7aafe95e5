"""Readers of columns of convention values; each is a :class:`~letterhead.conventions.readers.column.Reader`."""
