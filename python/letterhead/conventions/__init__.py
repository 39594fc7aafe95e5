"""Conventions for headers: CloudEvents, OpenTelemetry, schema ids, Spring, Debezium, AMQP, dead letter queues.

:func:`profile` returns the columns of a convention for ``select``. Values that contain several fields are parsed by
:mod:`letterhead.conventions.amqp` and, in columns, by functions of :mod:`letterhead.arrow`. :func:`trace_link` returns the
span link of a message.
"""

from __future__ import annotations

from letterhead._names import check_name
from letterhead.conventions import amqp
from letterhead.conventions.profiles import PROFILES
from letterhead.conventions.trace_links import TraceLink, trace_link
from letterhead.fields import Field

__all__ = ["TraceLink", "amqp", "trace_link"]


def __dir__() -> list[str]:
    return __all__


def profile(name: str) -> dict[str, Field]:
    """Return the columns of a convention.

    No column is required: a column is null for a message without its header. The dict is a copy; add, drop and rename
    columns as needed.

    Parameters
    ----------
    name : str
        One of ``opentelemetry``, ``cloudevents``, ``confluent``, ``streams-dlq``, ``connect-dlq``, ``smallrye-dlq``,
        ``spring``, ``spring-dlt``, ``spring-retry``, ``debezium``, ``debezium-outbox``, ``eventhubs``, ``apicurio``.

    Returns
    -------
    dict of str to Field
        Output column to key and type, for ``select``, ``select_headers`` and ``messages``.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("tenant", "acme"), ("__connect.errors.offset", "17")], "kafka")
    >>> origin = lh.select(data, {**lh.profile("connect-dlq"), "tenant": "string"})
    >>> origin["original_offset"], origin["tenant"], origin["original_topic"]
    (17, 'acme', None)
    """
    if not isinstance(name, str):
        raise TypeError(
            f"profile must be str, not {type(name).__name__}: it names a convention. letterhead.arrow.scan(column) lists the "
            "headers that a column has"
        )
    check_name("profile", name, PROFILES)
    return PROFILES[name].columns()
