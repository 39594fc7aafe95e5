"""The bytes of all headers of one message: one layout a file, each with ``read`` and ``write``."""
