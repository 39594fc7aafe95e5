"""The bytes of one message, a block and the fields around it: one layout a file, each with ``read`` and ``write``."""
