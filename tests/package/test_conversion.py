"""Conversion between every two formats: what comes back is what went in, or the losses name what does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers import strategies
from tests.helpers.implementations import binary_column, plain
from tests.helpers.strategies import BATCHES, MESSAGES, ONE, WRITTEN, few
from tests.reference import ops
from tests.reference.formats import FORMATS

SPELLINGS = ["be", "le", "text"]

every_one = pytest.mark.parametrize("format", ONE)
every_batch = pytest.mark.parametrize("format", BATCHES)


class Way(NamedTuple):
    """One way from a format to another: the message there, and what was lost."""

    data: bytes
    losses: lh.Losses

    def losses_of(self, header: int) -> list[lh.Loss]:
        """Return the losses of a header."""
        return [loss for loss in self.losses if loss.header == header]


def convert(data: bytes, format: str, target: str, types: Any) -> Way | None:
    """Convert a message; none where the target has no message for it."""
    result = lh.convert(data, format, target=target, types=types, on_loss="report")
    if result.data is None:
        return None
    assert lh.validate(result.data, target) == []
    return Way(result.data, result.losses)


def has_types(format: str) -> bool:
    return FORMATS[format].traits.types is not None


def headers_of(data: bytes, format: str) -> list[Any]:
    read = plain(lh.decode(data, format))
    return (read["headers"] if isinstance(read, dict) else read) or []


def is_written(losses: list[lh.Loss]) -> bool:
    """Return whether a header with these losses was written all the same."""
    return all(loss.written is not None for loss in losses)


@pytest.mark.parametrize(("timestamp", "codes"), [(-1, []), (-2, ["out_of_range"]), (0, []), (5, [])])
def test_timestamp_minus_one_is_absent_and_other_negatives_lost(timestamp: int, codes: list[str]) -> None:
    data = lh.encode({"headers": [], "timestamp": timestamp, "payload": b""}, "streams-timestamped")
    assert data is not None
    way = convert(data, "streams-timestamped", "iggy-message", None)
    assert way is not None
    assert [loss.code for loss in way.losses] == codes
    assert plain(lh.decode(way.data, "iggy-message"))["timestamp"] == 1000 * max(timestamp, 0)


# --- headers ---------------------------------------------------------------------------------------------------------


@every_one
@few
@given(st.data())
def test_headers_survive_conversion_or_losses_name_them(format: str, data: st.DataObject) -> None:
    message = data.draw(strategies.valid_bytes(format))
    before = headers_of(message, format)
    source = data.draw(st.sampled_from(FORMATS[format].traits.instead or (format,)))
    for target in WRITTEN:
        for types in [None, "binary"] if has_types(target) else [None, *SPELLINGS]:
            there = convert(message, format, target, types)
            if there is not None and not are_without_headers(there) and not any(map(is_lost_nan, there.losses)):
                check_way_back(before, there, target, source)


def check_way_back(before: list[Any], there: Way, target: str, source: str) -> None:
    stayed = [place for place in range(len(before)) if is_written(there.losses_of(place))]
    between = headers_of(there.data, target)
    assert len(between) == len(stayed)
    restored = convert(there.data, target, source, types_back(there, target, source))
    assert restored is not None
    after = iter(headers_of(restored.data, source))
    for index, place in enumerate(stayed):
        losses = restored.losses_of(index)
        if is_written(losses) and next(after) != before[place]:
            harmless = all(map(is_undone, there.losses_of(place))) and all(map(is_harmless, losses))
            assert not harmless, (before[place], between[index])
    assert next(after, None) is None


def is_undone(loss: lh.Loss) -> bool:
    """Return whether a loss concerns a type and its text names the remedy."""
    return loss.code == "type_not_carried" and loss.type is not None


def is_harmless(loss: lh.Loss) -> bool:
    """Return whether a loss concerns a type that the bytes do not carry."""
    return loss.code == "type_not_carried" and loss.written == "as it is"


def is_lost_nan(loss: lh.Loss) -> bool:
    """Return whether a loss concerns a NaN that is not restored; other tests cover the headers beside it."""
    return loss.code == "type_not_carried" and loss.written == "text" and loss.type is None


def are_without_headers(way: Way) -> bool:
    """Return whether all headers were lost together, as in a message that cannot have any."""
    return any(loss.header is None and "headers" in loss.message for loss in way.losses)


def types_back(there: Way, target: str, source: str) -> Any:
    """Return what is said of types on the way back: what the report of the way there says."""
    if has_types(source):
        return there.losses.types or ("binary" if has_types(target) else None)
    return "be"


@every_one
@few
@given(st.data())
def test_first_unaccepted_loss_is_raised(format: str, data: st.DataObject) -> None:
    message = data.draw(strategies.valid_bytes(format) | strategies.loosely_written_bytes(format))
    for target in WRITTEN:
        types = data.draw(st.sampled_from([None, "binary"] if has_types(target) else [None, *SPELLINGS]))
        options: dict[str, Any] = {"target": target, "types": types}
        try:
            result = lh.convert(message, format, on_loss="report", **options)
        except lh.EncodeError as error:
            with pytest.raises(lh.EncodeError) as caught:
                lh.convert(message, format, on_loss="drop", **options)
            assert vars(caught.value) == vars(error)
            continue
        assert lh.convert(message, format, on_loss="drop", **options) == result.data
        raised = [loss for loss in result.losses if types not in SPELLINGS or not is_agreed(loss)]
        try:
            assert lh.convert(message, format, **options) == result.data
        except lh.ConversionError as error:
            assert (error.format, error.code, error.message) == (target, *raised[0][:2])
            assert (error.header, error.key, error.row) == (*raised[0][2:4], None)
        else:
            assert raised == []


def is_agreed(loss: lh.Loss) -> bool:
    """Return whether a loss concerns a type, when the call specified how to write values without one."""
    return loss.code == "type_not_carried" and loss.written is not None


def test_spelled_out_nan_is_any_nan_and_reported_as_loss() -> None:
    for bits, type in ((b"\x7f\xc0\0\0", "float32:text"), (b"\x7f\xc0\0\1", None)):
        message = ops.encode([("a", "float32", bits)], "kip82-typed") or b""
        result = lh.convert(message, "kip82-typed", target="kafka", types="text", on_loss="report")
        assert [(loss.type, loss.written) for loss in result.losses] == [(type, "text")]
        assert headers_of(result.data, "kafka") == [("a", None, b"NaN")]


def test_lost_nan_keeps_types_of_its_key_aligned() -> None:
    headers = [("a", "float32", b"\x7f\xc0\0\1"), ("a", "int8", b"\1"), ("a", "string", b"x")]
    message = ops.encode(headers, "kip82-typed") or b""
    result = lh.convert(message, "kip82-typed", target="kafka", types="text", on_loss="report")
    restored = lh.convert(result.data, "kafka", target="kip82-typed", types=result.losses.types)
    assert headers_of(restored, "kip82-typed")[1:] == headers[1:]


# --- fields ----------------------------------------------------------------------------------------------------------

DERIVED = ("crc", "checksum", "magic", "attributes", "tombstone")
TIMES = ("timestamp", "origin_timestamp")


@pytest.mark.parametrize("format", MESSAGES)
@few
@given(st.data())
def test_fields_are_carried_or_named_as_losses(format: str, data: st.DataObject) -> None:
    message = data.draw(strategies.valid_bytes(format))
    before = plain(lh.decode(message, format))
    for target in WRITTEN:
        types = None if has_types(target) else "be"
        result = lh.convert(message, format, target=target, types=types, on_loss="report")
        named = {loss.message.split()[0] for loss in result.losses if loss.header is None}
        after = {} if result.data is None else plain(lh.decode(result.data, target))
        fields = {meaning(name): value for name, value in after.items()} if isinstance(after, dict) else {}
        for name, value in before.items():
            if name in (*DERIVED, "headers") or value is None or name in named or result.data is None:
                continue
            micros = FORMATS[format].micros, FORMATS[target].micros
            if name in TIMES:
                value = scaled(value, *micros)
            if name in ("offset", *TIMES) and value == -1 and micros[1]:
                value = 0
            assert fields[meaning(name)] == value, (name, target)


def meaning(name: str) -> str:
    return "payload" if name == "value" else name


def scaled(time: int, from_micros: bool, to_micros: bool) -> int:
    if from_micros == to_micros or (time == -1 and to_micros):
        return time
    return time * 1000 if to_micros else time // 1000


# --- what cannot be converted ----------------------------------------------------------------------------------------


@every_batch
def test_batch_messages_are_converted_one_by_one(format: str) -> None:
    calls: list[Any] = [
        lambda: lh.convert(b"", format, target="kafka"),
        lambda: lha.convert(binary_column([b""]), format, target="kafka"),
        lambda: ops.convert(b"", format, target="kafka"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^{format} is a batch: convert its messages one by one$"):
            call()


@every_batch
def test_batch_format_is_no_conversion_target(format: str) -> None:
    calls: list[Any] = [
        lambda: lh.convert(b"", "kafka", target=format),
        lambda: lha.convert(binary_column([b""]), "kafka", target=format),
        lambda: ops.convert(b"", "kafka", target=format),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^{format} is a batch and no target$"):
            call()


def test_format_of_two_layouts_is_no_conversion_target() -> None:
    calls: list[Any] = [
        lambda: lh.convert(b"", "kafka", target="iggy-auto"),
        lambda: lha.convert(binary_column([b""]), "kafka", target="iggy-auto"),
        lambda: ops.convert(b"", "kafka", target="iggy-auto"),
        lambda: lh.encode([], "iggy-auto"),
        lambda: ops.encode([], "iggy-auto"),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"^iggy-auto reads either layout and is no target: name iggy or iggy-2023$"
        ):
            call()
