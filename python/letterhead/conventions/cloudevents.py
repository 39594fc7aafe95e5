"""CloudEvents in Kafka's binary content mode: attributes in headers, data in the value."""

from letterhead.conventions.profile import Profile, Row

__all__ = ["CLOUDEVENTS"]

CLOUDEVENTS = Profile(
    "cloudevents",
    "CloudEvents 1.0, binary content mode",
    "CloudEvents, Kafka Protocol Binding 1.0.2, section 3.2; extensions are headers `ce_` and their name, as text",
    (
        Row("ce_specversion", "ce_specversion", "string", "version of the specification, `1.0`"),
        Row("ce_id", "ce_id", "string", "names the event within its source"),
        Row("ce_source", "ce_source", "string", "a URI reference"),
        Row("ce_type", "ce_type", "string", "what happened"),
        Row("ce_subject", "ce_subject", "string", "of what in the source it is"),
        Row("ce_time", "ce_time", "string", "RFC 3339: `lha.rfc3339` makes it a timestamp"),
        Row("ce_dataschema", "ce_dataschema", "string", "a URI"),
        Row("content_type", "content-type", "string", "`datacontenttype`: media type of the value"),
    ),
)
