"""Files of state stores: errors, key codecs, column families, row layouts and RocksDB databases.

:class:`~letterhead.storage.database.StoredFamilies` opens a database to be read. ``letterhead.read``, ``letterhead.state``
and the command line build on this package; it imports none of them, and ``rocksdict`` only when a database is opened.
"""
