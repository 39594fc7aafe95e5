"""Readers of columns of convention values, which implement :class:`letterhead.conventions.readers.column.ColumnReader`."""
