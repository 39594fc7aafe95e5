"""What holds for every format: what is written is read back, and what one side refuses the other does not make."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import HeaderError
from tests.helpers import strategies
from tests.helpers.batch_bytes import MESSAGE_OF, batch, frame, message, polled
from tests.helpers.implementations import plain, values
from tests.helpers.strategies import BATCHES, BLOCKS, ONE, WRITTEN, few
from tests.reference import ops
from tests.reference.formats import FORMATS

DERIVED = ("crc", "tombstone", "attributes")
"""Fields that follow from the others, in full or in part."""

every_format = pytest.mark.parametrize("format", FORMATS)
every_one = pytest.mark.parametrize("format", ONE)
every_written = pytest.mark.parametrize("format", WRITTEN)


@every_written
@few
@given(st.data())
def test_strict_reader_reads_written_messages(format: str, data: st.DataObject) -> None:
    source = data.draw(strategies.messages(format))
    written = lh.encode(values(source), format)
    assert written is not None
    assert lh.validate(written, format, strict_types=False) == []
    read = lh.decode(written, format)
    assert without_derived(plain(read)) == without_derived(source)
    assert lh.encode(read, format) == written


def without_derived(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    # A wrapper that holds neither a value nor headers is no wrapper: a message of the drafts without a value has no headers.
    fields = {name: value for name, value in message.items() if name not in DERIVED}
    return {**fields, "headers": fields["headers"] or []}


@every_written
@few
@given(st.data())
def test_values_rejected_by_reader_are_not_written(format: str, data: st.DataObject) -> None:
    source = data.draw(strategies.loose_messages(format, strategies.loose_headers()))
    types: Any = "binary" if FORMATS[format].traits.types else data.draw(st.sampled_from(["be", "le", "text"]))
    try:
        written = lh.encode(values(source), format, on_loss="drop", types=types)
    except HeaderError:
        return
    if written is not None:
        assert lh.validate(written, format) == []


@every_one
@few
@given(st.data())
def test_lenient_reader_accepts_all_that_strict_one_accepts(format: str, data: st.DataObject) -> None:
    # Few random bytes are valid.
    for value in (data.draw(strategies.valid_bytes(format)), data.draw(strategies.any_bytes(format)) or b""):
        for strict, lenient in (({}, {"lenient": True}), ({"strict_types": True}, {})):
            if not lh.validate(value, format, **strict):
                assert lh.decode(value, format, **lenient) == lh.decode(value, format, **strict)


@pytest.mark.parametrize("format", BLOCKS)
@few
@given(st.data())
def test_many_headers_keep_order(format: str, data: st.DataObject) -> None:
    headers = data.draw(strategies.headers(format))
    many = headers * 3
    written = lh.encode(values(many), format)
    assert written is not None
    assert plain(lh.decode(written, format)) == many


@pytest.mark.parametrize("format", ["iggy", "iggy-message"])
@few
@given(st.data())
def test_canonical_order_is_order_of_encoded_keys(format: str, data: st.DataObject) -> None:
    source = data.draw(strategies.messages(format))
    written = lh.encode(values(source), format, canonical=True)
    assert written == ops.encode(source, format, canonical=True)
    read = lh.decode(written or b"", format)
    assert lh.encode(read, format, canonical=True) == lh.encode(read, format) == written
    headers = source["headers"] if isinstance(source, dict) else source
    assert sorted(plain(read.headers if isinstance(read, lh.Message) else read), key=repr) == sorted(headers, key=repr)


# --- many messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", BATCHES)
@few
@given(st.data())
def test_valid_messages_have_no_errors_strict_or_lenient(format: str, data: st.DataObject) -> None:
    data = data.draw(strategies.valid_bytes(format))
    assert lh.validate(data, format) == []
    assert list(lh.messages(data, format)) == list(lh.messages(data, format, lenient=True))


@pytest.mark.parametrize("format", MESSAGE_OF)
@few
@given(st.data())
def test_set_yields_its_messages(format: str, data: st.DataObject) -> None:
    inner_format = MESSAGE_OF[format]
    rows = [
        message(inner_format, **fields) for fields in data.draw(st.lists(strategies.messages(inner_format), max_size=3))
    ]
    read = list(lh.messages(b"".join(rows), format))
    assert read == [lh.decode(data, inner_format) for data in rows]


@few
@given(st.lists(strategies.polled_fields, max_size=3), st.booleans())
def test_poll_yields_its_messages(drawn: list[dict[str, Any]], later: bool) -> None:
    rows = b"".join(polled(fields, later=later) for fields in drawn)
    read = [plain(message) for message in lh.messages(rows, "iggy-polled-2023")]
    hidden = {"checksum": None} if later else {"checksum": None, "state": None}
    assert [{**message, "checksum": None} for message in read] == [{**message, **hidden} for message in drawn]


@given(st.lists(st.tuples(strategies.headers("iggy"), strategies.payloads, strategies.ids), max_size=3), st.data())
def test_batch_yields_messages_relative_to_its_base(drawn: list[Any], data: st.DataObject) -> None:
    small = st.integers(0, 2**62)
    base, timestamp, origin = (data.draw(small) for _ in range(3))
    frames = [
        frame(place, payload, ops.encode(headers, "iggy") or b"", id=id, later=7 * place)
        for place, (headers, payload, id) in enumerate(drawn)
    ]
    read = [
        plain(message)
        for message in lh.messages(batch(*frames, base=base, timestamp=timestamp, origin=origin), "iggy-batch")
    ]
    assert [{**message, "checksum": None} for message in read] == [
        {
            "offset": base + place,
            "timestamp": timestamp,
            "origin_timestamp": origin + 7 * place,
            "id": id,
            "checksum": None,
            "headers": headers,
            "payload": payload,
        }
        for place, (headers, payload, id) in enumerate(drawn)
    ]
