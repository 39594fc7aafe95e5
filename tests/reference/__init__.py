"""The formats of letterhead in plain Python: a specification to read and a reference to test against.

It is written for a reader who has the bytes in one hand and the layout in the other. It is slow, shares nothing with the
Rust core, and is used by tests, benchmarks and fuzzing only. Entry points are the functions of :mod:`tests.reference.ops`.

* :mod:`tests.reference.formats` is the table of formats: a new one is its file and one row there;
* ``headers/``, ``messages/`` and ``batches/`` hold one layout a file;
* :mod:`tests.reference.ops` holds the operations, for one message and for a list of rows;
* :mod:`tests.reference.losses` says what a target can carry of headers, :mod:`tests.reference.convert` what of fields;
* :mod:`tests.reference.types` parses values, :mod:`tests.reference.value_types` lists types, :mod:`tests.reference.keys` the forms of keys;
* :mod:`tests.reference.codecs`, :mod:`tests.reference.crc32c` and :mod:`tests.reference.xxh3` are what batches need.
"""
