"""Conventions for headers as named sets of columns, with real types.

Each is a table in a file of its own; :func:`profile` gives it as the mapping that ``select`` takes, everywhere.
"""

from __future__ import annotations

from letterhead.columns import Field
from letterhead.errors import check_name
from letterhead.profiles.cloudevents import CLOUDEVENTS
from letterhead.profiles.connect import CONNECT_DLQ
from letterhead.profiles.debezium import DEBEZIUM, DEBEZIUM_OUTBOX
from letterhead.profiles.eventhubs import EVENTHUBS
from letterhead.profiles.otel import OTEL
from letterhead.profiles.schema_id import SCHEMA_ID
from letterhead.profiles.spring import SPRING, SPRING_DLT, spring_columns
from letterhead.profiles.streams import STREAMS_DLQ
from letterhead.profiles.table import Profile, Row

__all__ = ["PROFILES", "Profile", "Row", "profile", "spring_columns"]

PROFILES: dict[str, Profile] = {
    made.name: made
    for made in (
        OTEL, CLOUDEVENTS, SCHEMA_ID, STREAMS_DLQ, CONNECT_DLQ, SPRING, SPRING_DLT, DEBEZIUM, DEBEZIUM_OUTBOX, EVENTHUBS
    )
}  # fmt: skip
"""Every convention, by name."""


def profile(name: str) -> dict[str, Field]:
    """Give the columns of a convention.

    Nothing in them is required: a message without a header has null in its column. The dict is the caller's to change:
    add columns of your own, drop some, rename them.

    Parameters
    ----------
    name : str
        One of ``otel``, ``cloudevents``, ``schema-id``, ``streams-dlq``, ``connect-dlq``, ``spring``, ``spring-dlt``,
        ``debezium``, ``debezium-outbox``, ``eventhubs``.

    Returns
    -------
    dict of str to Field
        Output column to key and type, for ``select``, ``select_headers`` and ``messages``.

    Raises
    ------
    ValueError
        If there is no such convention.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("tenant", "acme"), ("__connect.errors.offset", "17")], "kafka")
    >>> found = lh.select(data, "kafka", {**lh.profile("connect-dlq"), "tenant": "string"})
    >>> found["original_offset"], found["tenant"], found["original_topic"]
    (17, 'acme', None)
    """
    check_name("profile", name, PROFILES)
    return PROFILES[name].columns()
