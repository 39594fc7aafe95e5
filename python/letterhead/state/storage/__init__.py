"""Files of state stores: key codecs, column families, row layouts and RocksDB databases.

:class:`~letterhead.state.storage.database.StoredFamilies` opens a database read-only. This package is the base of
``letterhead.state`` and the command line and imports neither; it imports ``rocksdict`` when a database is opened.
"""
