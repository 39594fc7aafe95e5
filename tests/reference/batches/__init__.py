"""The bytes of many messages: one layout a file, each with ``messages``."""
