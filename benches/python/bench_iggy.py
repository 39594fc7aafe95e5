"""What a Python producer pays to give a message its headers: letterhead beside Apache Iggy's own package.

`apache-iggy` has no codec of its own: headers are encoded when a `SendMessage` is made, which also takes the time of
day and copies the payload, here of one byte. A row says what that costs without headers. It cannot read headers without
a server, so there is nothing to compare decoding with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pytest
from apache_iggy import HeaderValue, SendMessage
from conftest import OBJECTS, RELEASED, Sizes

import letterhead as lh
from benches import typed
from letterhead import arrow as lha
from tests.reference import ops

MADE = "values made before (iggy), one call each"
FROM_PYTHON = "values of Python (iggy), one call each"
THEIRS = f"apache-iggy {version('apache-iggy')}"
PAYLOAD = b"x"


def ours(message: typed.Message) -> dict[str, Any]:
    """Return the types of the values, by our names."""
    return {
        "amount": lh.Int64(message.amount),
        "flag": lh.Bool(message.flag),
        "retry": lh.Int32(message.retry),
        "tenant": lh.String(message.tenant),
        "traceparent": lh.String(message.traceparent),
    }


def theirs(message: typed.Message) -> dict[str, Any]:
    """Return the types by the names of the other library."""
    return {
        "amount": HeaderValue.Int64(message.amount),
        "flag": HeaderValue.Bool(message.flag),
        "retry": HeaderValue.Int32(message.retry),
        "tenant": HeaderValue.String(message.tenant),
        "traceparent": HeaderValue.String(message.traceparent),
    }


def test_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    result = [ours(message) for message in typed.messages(sizes.plain)]
    encode_each(measure, MADE, "letterhead", sizes, result, lambda headers: lh.encode(headers, "iggy"))


def test_letterhead_from_headers(measure: Callable[..., None], sizes: Sizes) -> None:
    result = [lh.Headers(ours(message)) for message in typed.messages(sizes.plain)]
    encode_each(measure, MADE, "letterhead, from lh.Headers", sizes, result, lambda headers: lh.encode(headers, "iggy"))


def test_letterhead_from_a_column(measure: Callable[..., None], sizes: Sizes) -> None:
    column, blocks = typed.headers("iggy", sizes.batch), typed.blocks("iggy", sizes.batch)

    def check(result: pa.Array) -> None:
        assert result.equals(blocks)

    measure(
        lambda: lha.encode(column, "iggy"),
        check,
        job="encode one message",
        source=MADE,
        side="letterhead, a column at once",
        rows=sizes.batch,
        headers=sizes.batch * typed.HEADERS_A_ROW,
        reads=column.nbytes,
        writes=lambda result: result.nbytes,
        buffers=RELEASED,
    )


def test_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    rows = typed.triples("iggy", sizes.plain)
    encode_each(measure, MADE, "tests/reference", sizes, rows, lambda headers: ops.encode(headers, "iggy"))


def test_apache_iggy(measure: Callable[..., None], sizes: Sizes) -> None:
    result = [theirs(message) for message in typed.messages(sizes.plain)]
    send_each(measure, MADE, f"{THEIRS} SendMessage", sizes, result, lambda headers: SendMessage(PAYLOAD, headers))


def test_apache_iggy_without_headers(measure: Callable[..., None], sizes: Sizes) -> None:
    messages = typed.messages(sizes.plain)
    send_each(measure, MADE, f"{THEIRS} SendMessage, no headers", sizes, messages, lambda _: SendMessage(PAYLOAD))


def test_letterhead_from_python(measure: Callable[..., None], sizes: Sizes) -> None:
    messages = typed.messages(sizes.plain)
    encode_each(measure, FROM_PYTHON, "letterhead", sizes, messages, lambda message: lh.encode(ours(message), "iggy"))


def test_apache_iggy_from_python(measure: Callable[..., None], sizes: Sizes) -> None:
    messages = typed.messages(sizes.plain)
    side = f"{THEIRS} SendMessage"
    send_each(measure, FROM_PYTHON, side, sizes, messages, lambda message: SendMessage(PAYLOAD, theirs(message)))


def test_apache_iggy_from_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    """Less than the job: the package chooses the narrowest type for each number, so types change row by row."""
    messages = typed.messages(sizes.plain)
    side = f"{THEIRS} SendMessage, types guessed"
    send_each(
        measure, FROM_PYTHON, side, sizes, messages, lambda message: SendMessage(PAYLOAD, dict(message._asdict()))
    )


def encode_each(
    measure: Callable[..., None],
    source: str,
    side: str,
    sizes: Sizes,
    original: list[Any],
    encode: Callable[[Any], bytes],
) -> None:
    """Measure one encoder, called once a message."""

    def check(_: None) -> None:
        assert [encode(headers) for headers in original] == typed.blocks("iggy", sizes.plain).to_pylist()

    measure_pair(measure, source, side, sizes, original, encode, check)


def send_each(
    measure: Callable[..., None],
    source: str,
    side: str,
    sizes: Sizes,
    original: list[Any],
    make: Callable[[Any], SendMessage],
) -> None:
    """Measure the package, which shows nobody what it made, but refuses a block of more than 100,000 bytes."""

    def check(_: None) -> None:
        assert all(isinstance(make(header_map), SendMessage) for header_map in original)
        header = 10 + len("k000") + 255
        most = 100_000 // header
        many = {f"k{number:03}": b"v" * 255 for number in range(most + 1)}
        SendMessage(PAYLOAD, dict(list(many.items())[:most]))
        with pytest.raises(ValueError, match="Too big headers"):
            SendMessage(PAYLOAD, many)

    measure_pair(measure, source, side, sizes, original, make, check)


def measure_pair(
    measure: Callable[..., None],
    source: str,
    side: str,
    sizes: Sizes,
    original: Iterable[Any],
    work: Callable[[Any], Any],
    check: Callable[[None], None],
) -> None:
    """Measure a call a message; each result is dropped before the next, as in a producer."""

    def run() -> None:
        for message in original:
            work(message)

    measure(
        run,
        check,
        job="encode one message",
        source=source,
        side=side,
        rows=sizes.plain,
        headers=sizes.plain * typed.HEADERS_A_ROW,
        reads=typed.blocks("iggy", sizes.plain).nbytes,
        buffers=OBJECTS,
        rounds=10,
    )
