"""Names of Kafka's topics: :func:`check_topic_name`."""

from __future__ import annotations

import re

from letterhead._formatting import printable

__all__ = ["TOPIC_NAME", "check_topic_name"]

TOPIC_NAME = r"[a-zA-Z0-9._-]{1,249}"
"""Regular expression of a name, which Kafka's brokers enforce."""


def check_topic_name(name: str) -> None:
    """Raise TypeError or ValueError for a name that no topic can have."""
    if not isinstance(name, str):
        raise TypeError(f"topic must be str, not {name.__class__.__name__}")
    if re.fullmatch(TOPIC_NAME, name) is None or name in (".", ".."):
        remedy = ": the topic precedes the brokers, as in topic, bootstrap_servers" if ":" in name else ""
        raise ValueError(
            f"topic {printable(name)!r} must have 1 to 249 letters, digits, dots, underscores and hyphens, and not be '.' or "
            f"'..'{remedy}"
        )
