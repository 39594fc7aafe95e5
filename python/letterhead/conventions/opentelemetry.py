"""W3C trace context and baggage, as OpenTelemetry's propagators write them."""

from letterhead.conventions.profile import Profile, Row

__all__ = ["OTEL"]

OTEL = Profile(
    "otel",
    "OpenTelemetry: W3C trace context and baggage",
    "W3C Trace Context, W3C Baggage; OpenTelemetry's propagators write the same text as over HTTP",
    (
        Row(
            "traceparent", "traceparent", "string", "version, trace, parent and flags: `lha.traceparent` takes it apart"
        ),
        Row("tracestate", "tracestate", "string", "`key=value` pairs of vendors, joined by commas"),
        Row("baggage", "baggage", "string", "`key=value` pairs, percent-encoded, joined by commas"),
    ),
)
