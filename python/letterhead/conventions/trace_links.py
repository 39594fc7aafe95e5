"""Span links of messages, from the W3C headers ``traceparent``, ``tracestate`` and ``baggage``, or Zipkin's ``b3``: :func:`trace_link`.

A job that reads a batch of messages continues many traces at once, which OpenTelemetry describes by links from its span
to the spans of the producers. Functions for columns are in :mod:`letterhead.arrow` and :mod:`letterhead.spark`.

Source: W3C, Trace Context Level 2, sections 3.2 and 3.3; W3C, Baggage, section 3; OpenTelemetry, Trace API, Link;
openzipkin/b3-propagation, Single Header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead.headers import Headers
from letterhead.values import Value

if TYPE_CHECKING:
    from letterhead.headers import GivenKey, GivenValue

__all__ = ["TraceLink", "check_names_of_baggage", "find_parent_error", "parse_baggage", "parse_state", "trace_link"]

PARENT_FORM = (
    r"(?P<version>[0-9a-f]{2})-(?P<trace_id>[0-9a-f]{32})-(?P<parent_id>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>(?:-.*)?)"
)
"""Regular expression of ``traceparent``. Future versions may have more after the flags."""

B3_FORM = r"(?P<trace_id>(?:[0-9a-f]{16}){1,2})-(?P<span_id>[0-9a-f]{16})(?P<sampled>(?:-[01d])?)(?P<parent>(?:-[0-9a-f]{16})?)"
"""Regular expression of ``b3`` with ids. A parent follows only after a sampling state."""

B3_SAMPLED = ("-1", "-d")
"""Sampled states of ``b3``: accepted and debug. Without a state, the receiver decides."""

KNOWN_FLAGS = {"00": 0b11}
"""Flag bits that a version defines; for later versions only the first is known."""

_MAX_STATE_MEMBERS = 32
_MAX_BAGGAGE_MEMBERS = 180
_MAX_BAGGAGE_BYTES = 8192

_STATE_MEMBER = re.compile(rb"([a-z0-9][a-z0-9_*/@-]{0,255})=([ -+\--<>-~]{0,255}[!-+\--<>-~])")
_BAGGAGE_MEMBER = re.compile(
    rb"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*([!#-+\--:<-\[\]-~]*)[ \t]*(?:;.*)?", re.DOTALL
)


class TraceLink(NamedTuple):
    """A link to the span that sent a message, in the shape of OpenTelemetry.

    Attributes
    ----------
    trace_id, span_id : str
        32 and 16 hexadecimal digits in lower case.
    trace_flags : int
        1 if the trace is sampled, plus 2 if its id is random. Reserved bits are cleared.
    trace_state : str or None
        The members of ``tracestate``, joined by commas; None if it is absent or invalid.
    attributes : dict of str to str
        The members of ``baggage``, decoded.
    """

    trace_id: str
    span_id: str
    trace_flags: int
    trace_state: str | None
    attributes: dict[str, str]


def trace_link(
    headers: Headers | Mapping[Any, GivenValue] | Iterable[tuple[GivenKey, GivenValue]],
    *,
    baggage: Sequence[str] | None = None,
) -> TraceLink | None:
    """Return the span link of one message. For a column there is :func:`letterhead.arrow.trace_links`.

    Parameters
    ----------
    headers : Headers, mapping or iterable of pairs
        The headers of the message.
    baggage : sequence of str, optional
        Keys of the baggage to return as attributes: baggage may be confidential, and attributes are exported. By default
        all.

    Returns
    -------
    TraceLink or None
        None if both ``traceparent`` and ``b3`` are absent or invalid, in which case the other headers are ignored.

    Notes
    -----
    Without a valid ``traceparent``, the single header ``b3`` of Zipkin is the parent, as for OpenTelemetry: a trace id
    of 64 bits gets zeros in front, and ``tracestate`` is ignored.

    Of several ``traceparent`` headers the last is used, as by Kafka clients of OpenTelemetry. Several ``tracestate`` or
    ``baggage`` headers are combined. A ``tracestate`` with an invalid member, or with more than 32, is dropped; of a
    repeated key the first member is used. Of ``baggage``, invalid members are dropped, and members after the 180th or
    beyond 8,192 bytes; of a repeated key the last member is used. As W3C specifies, ``%20`` is a space, and ``+`` is
    not.

    Examples
    --------
    >>> import letterhead as lh
    >>> headers = [
    ...     ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ...     ("tracestate", "congo=t61rcWkgMzE"),
    ...     ("baggage", "tenant=acme,user=Am%C3%A9lie"),
    ... ]
    >>> link = lh.conventions.trace_link(headers, baggage=["user"])
    >>> link.span_id, link.trace_flags, link.trace_state, link.attributes
    ('b7ad6b7169203331', 1, 'congo=t61rcWkgMzE', {'user': 'Amélie'})
    """
    check_names_of_baggage(baggage)
    message_headers = headers if isinstance(headers, Headers) else Headers(headers)
    match = _parent(_last(message_headers, "traceparent"))
    has_state = match is not None
    if match is None:
        match = _parent(_parent_of_b3(_last(message_headers, "b3")))
    if match is None:
        return None
    version, flags = match["version"].decode(), int(match["flags"], 16)
    return TraceLink(
        match["trace_id"].decode(),
        match["parent_id"].decode(),
        flags & KNOWN_FLAGS.get(version, 1),
        parse_state(_combine(message_headers, "tracestate")) if has_state else None,
        parse_baggage(_combine(message_headers, "baggage"), baggage),
    )


def check_names_of_baggage(baggage: Sequence[str] | None) -> None:
    """Raise ``TypeError`` unless the keys of baggage to return are a list of str."""
    if baggage is None:
        return
    if isinstance(baggage, str) or not all(isinstance(name, str) for name in baggage):
        raise TypeError("baggage must be a list of str: keys of the baggage")


def _last(headers: Headers, key: str) -> bytes:
    values = headers.get_all(key)
    return ((_bytes(values[-1]) if values else None) or b"").strip(b" \t")


def _parent(data: bytes) -> re.Match[bytes] | None:
    """Return the parts of a valid ``traceparent``, or None."""
    match = re.fullmatch(PARENT_FORM.encode(), data, re.DOTALL)
    return None if match is None or find_parent_error(match) is not None else match


def _parent_of_b3(data: bytes) -> bytes:
    """Return ``b3`` as ``traceparent``; empty for other forms, such as a decision without ids."""
    match = re.fullmatch(B3_FORM.encode(), data)
    if match is None or (match["parent"] and not match["sampled"]):
        return b""
    flags = b"01" if match["sampled"].decode() in B3_SAMPLED else b"00"
    return b"-".join((b"00", match["trace_id"].rjust(32, b"0"), match["span_id"], flags))


def find_parent_error(match: re.Match[bytes]) -> tuple[str, int] | None:
    """Return why a well-formed ``traceparent`` is invalid, and the byte; or None."""
    if match["version"] == b"ff":
        return "version ff is invalid", 0
    if match["version"] == b"00" and match["more"]:
        return "version 00 ends after the flags", match.start("more")
    for part in ("trace_id", "parent_id"):
        if not match[part].strip(b"0"):
            return f"the {part.replace('_', ' ')} has only zeros", match.start(part)
    return None


def parse_state(data: bytes | None) -> str | None:
    """Return the non-empty members of ``tracestate`` without white space around them; None if there are none."""
    members: dict[bytes, bytes] = {}
    count = 0
    for part in (data or b"").split(b","):
        # The value may begin with spaces, but the key may not.
        member = part.strip(b" \t")
        if not member:
            continue
        match = _STATE_MEMBER.fullmatch(member)
        count += 1
        if match is None or count > _MAX_STATE_MEMBERS:
            return None
        members.setdefault(match[1], member)
    return b",".join(members.values()).decode("ascii") or None


def parse_baggage(data: bytes | None, only: Sequence[str] | None = None) -> dict[str, str]:
    """Return the valid members of ``baggage``, without their properties."""
    from urllib.parse import unquote_to_bytes  # its import would take a tenth of the import time of letterhead

    members: dict[str, str] = {}
    length = 0
    for count, part in enumerate((data or b"").split(b",")):
        length += len(part) + (count > 0)
        if count == _MAX_BAGGAGE_MEMBERS or length > _MAX_BAGGAGE_BYTES:
            break
        match = _BAGGAGE_MEMBER.fullmatch(part)
        if match is not None and (only is None or match[1].decode() in only):
            members[match[1].decode()] = unquote_to_bytes(match[2]).decode("utf-8", "replace")
    return members


def _combine(headers: Headers, key: str) -> bytes:
    return b",".join(value for value in map(_bytes, headers.get_all(key)) if value)


def _bytes(header_value: Any) -> bytes | None:
    """Return a header value as bytes, whether or not its format stores types."""
    value = header_value.value if isinstance(header_value, Value) else header_value
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
