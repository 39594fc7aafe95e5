"""Files of state stores: key codecs, column families, row layouts and RocksDB databases.

:class:`~letterhead.state.storage.database.StoredFamilies` opens a database read-only. The rest of ``letterhead.state``
and the command line build on this package; it imports none of them, and ``rocksdict`` only when a database is opened.
"""
