"""The formats of this package in plain Python: specification to read, oracle to test against, never a fallback.

It is written for a reader who has the bytes in one hand and the layout in the other. Nothing here is fast, nothing is
shared with the Rust core, and nothing outside of tests and benchmarks uses it.

* :mod:`~letterhead.reference.formats` is the table of formats: a new one is its file and one row there;
* ``blocks/``, ``envelopes/`` and ``batches/`` hold one layout a file, and no verb;
* :mod:`~letterhead.reference.ops` holds the verbs, each once, for one cell and for a list of rows, and no format;
* :mod:`~letterhead.reference.losses` says what a target can carry of headers, :mod:`~letterhead.reference.convert` what
  of fields;
* :mod:`~letterhead.reference.types` says what the bytes of a value mean, :mod:`~letterhead.reference.kinds` which
  kinds there are, :mod:`~letterhead.reference.keys` which forms of keys;
* :mod:`~letterhead.reference.codecs`, :mod:`~letterhead.reference.crc32c` and :mod:`~letterhead.reference.xxh3` are what
  batches stand on.
"""
