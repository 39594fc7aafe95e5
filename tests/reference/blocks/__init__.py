"""The bytes of all headers of one message: one layout a file, each with ``walk`` and ``write``."""
