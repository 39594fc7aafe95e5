"""Conventions for headers: CloudEvents, OpenTelemetry, schema ids, Spring, Debezium, AMQP, dead letter queues.

:func:`profile` returns a convention as the columns that ``select`` takes. Values with parts of their own are read by
:mod:`letterhead.conventions.amqp` and, in columns, by the functions of :mod:`letterhead.arrow`.
"""

from __future__ import annotations

from letterhead.conventions import amqp
from letterhead.conventions.cloudevents import CLOUDEVENTS
from letterhead.conventions.dead_letter_queues import CONNECT_DLQ, STREAMS_DLQ
from letterhead.conventions.debezium import DEBEZIUM, DEBEZIUM_OUTBOX
from letterhead.conventions.eventhubs import EVENTHUBS
from letterhead.conventions.opentelemetry import OTEL
from letterhead.conventions.profile import Profile, Row
from letterhead.conventions.schema_ids import SCHEMA_ID
from letterhead.conventions.spring import SPRING, SPRING_DLT, spring_columns
from letterhead.errors import check_name
from letterhead.fields import Field

__all__ = ["PROFILES", "Profile", "Row", "amqp", "profile", "spring_columns"]

PROFILES: dict[str, Profile] = {
    made.name: made
    for made in (
        OTEL, CLOUDEVENTS, SCHEMA_ID, STREAMS_DLQ, CONNECT_DLQ, SPRING, SPRING_DLT, DEBEZIUM, DEBEZIUM_OUTBOX, EVENTHUBS
    )
}  # fmt: skip
"""Every convention, by name."""


def profile(name: str) -> dict[str, Field]:
    """Return the columns of a convention.

    No column is required: a message without the header has null in it. The dict is a copy; add, drop and rename columns
    as needed.

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
