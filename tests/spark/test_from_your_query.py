"""The queries of docs/how-to/from-your-query.md: what people write gives the wrong answers that it says, and ours the right ones."""

from __future__ import annotations

import json
import re
import statistics

import pyarrow.parquet as pq
import pytest

from benches.limits.summary import speed
from benches.spark import from_your_query as page
from tests.helpers import pages
from tests.spark.frames import failure

SECTIONS = {section.number: section for section in page.sections()}


@pytest.fixture(scope="module")
def messages():
    """Return the headers of every message by its offset, as pairs; null where there are none."""
    rows = page.topic().to_pylist()
    return {
        row["offset"]: row["headers"] and [(header["key"], header["value"]) for header in row["headers"]]
        for row in rows
    }


@pytest.fixture(scope="module")
def topic(spark):
    return spark.createDataFrame(page.topic()).repartition(2).cache()


@pytest.fixture
def answers(spark, topic):
    """Return what both sides of a section answer, by offset."""

    def answers(number: int):
        section = SECTIONS[number]
        with page.going_through(spark, section):
            theirs = page.run(section.theirs, "theirs", spark, topic).collect()
        ours = page.run(section.ours, "ours", spark, topic).collect()
        assert len(theirs) == len(ours) == 10_000
        return ({row.offset: row for row in side} for side in (theirs, ours))

    return answers


def values(headers, key):
    return [value for name, value in headers or [] if name == key]


def last(headers, key):
    return (values(headers, key) or [None])[-1]


def test_map_from_entries_loses_repeated_keys(spark, topic, answers, messages):
    section = SECTIONS[1]
    output = failure(page.run(section.theirs, "theirs", spark, topic))
    assert re.search(r"\[DUPLICATED_MAP_KEY\] Duplicate map key (route|retry) was found", output)
    theirs, ours = answers(1)
    assert (theirs[15].route, ours[15].route) == ("us-1", ["eu-1", "us-1"])
    lost = 0
    for offset, headers in messages.items():
        routes = [value.decode() for value in values(headers, "route")]
        assert ours[offset].route == routes
        assert theirs[offset].route == (routes or [None])[-1]
        lost += len(routes) > 1
    assert lost == page.DIFFER[1]


def test_filter_takes_first_value(topic, answers, messages):
    theirs, ours = answers(2)
    assert (bytes(theirs[4].retry), ours[4].retry) == (b"\0\0\0\0", 9)
    wrong = 0
    for offset, headers in messages.items():
        right = last(headers, "retry")
        assert ours[offset].retry == (right and int.from_bytes(right, "big", signed=True))
        assert theirs[offset].retry == (values(headers, "retry") or [None])[0]
        wrong += theirs[offset].retry != right
    assert wrong == page.DIFFER[2]
    absent = topic.selectExpr("filter(headers, h -> h.key = 'note')[0].value")
    assert "[INVALID_ARRAY_INDEX]" in failure(absent)


def test_cast_accepts_non_utf8_text(answers, messages):
    theirs, ours = answers(3)
    assert (theirs[1].city, ours[1].city, ours[1].error) == ("Zürich", "Zürich", None)
    assert (theirs[2].city, ours[2].city) == ("Z\ufffdrich", None)
    (error,) = ours[2].error
    assert (error.code, error.key, messages[2][error.header]) == ("value_not_utf8", "city", ("city", b"Z\xfcrich"))
    broken = {offset for offset, row in theirs.items() if row.city == "Z\ufffdrich"}
    assert broken == {offset for offset, row in ours.items() if row.error is not None}
    assert broken == {offset for offset, headers in messages.items() if headers and offset % 3 == 2}
    assert len(broken) == page.DIFFER[3]


def test_conv_ignores_sign_and_size(spark, answers, messages):
    theirs, ours = answers(4)
    assert (theirs[1].delta, ours[1].delta) == (4_294_967_294, -2)
    assert (theirs[7].delta, ours[7].delta, [error.code for error in ours[7].error]) == (12_594, None, ["wrong_size"])
    wrong = 0
    for offset, headers in messages.items():
        value = last(headers, "delta")
        assert theirs[offset].delta == (value and int.from_bytes(value, "big"))
        right = None if value is None or len(value) != 4 else int.from_bytes(value, "big", signed=True)
        assert ours[offset].delta == right
        assert (ours[offset].error is None) == (value is None or len(value) == 4)
        wrong += theirs[offset].delta != right
    assert wrong == page.DIFFER[4]
    for value, type in (("X'FFFFFFFF'", "int"), ("X'FFFFFFFFFFFFFFFF'", "bigint")):
        assert "[CAST_INVALID_INPUT]" in failure(
            spark.range(1).selectExpr(f"cast(conv(hex({value}), 16, 10) as {type})")
        )


def test_udf_per_header_differs_from_select_headers(spark, topic, answers, messages):
    theirs, ours = answers(5)
    assert (theirs[4].retry, ours[4].retry) == (0, 9)
    for offset, headers in messages.items():
        tenant, retry, amount = (last(headers, key) for key in ("tenant", "retry", "amount_cents"))
        assert (ours[offset].tenant, theirs[offset].tenant) == (tenant and tenant.decode(),) * 2
        assert ours[offset].retry == (retry and int.from_bytes(retry, "big", signed=True))
        assert ours[offset].amount_cents == (amount and int.from_bytes(amount, "big", signed=True))
    assert sum(theirs[offset].retry != ours[offset].retry for offset in ours) == page.DIFFER[5]

    section = SECTIONS[5]
    without = page.run(section.theirs.replace(" or []", ""), "theirs", spark, topic)
    assert "TypeError: 'NoneType' object is not iterable" in failure(without)
    noted = page.run(section.theirs.replace('"tenant"', '"note"'), "theirs", spark, topic)
    assert "AttributeError: 'NoneType' object has no attribute 'decode'" in failure(noted)
    negative = page.run(section.theirs.replace('"retry"', '"delta"'), "theirs", spark, topic)
    assert negative.where("offset = 1").first().delta == 4_294_967_294


def test_hand_written_amqp_decoder_differs(answers, messages):
    theirs, ours = answers(6)
    assert (theirs[1].sequence, ours[1].sequence) == ("U\x01", 1)
    assert (theirs[2].sequence, ours[2].sequence) == ("18446744073709551614", -2)
    assert (theirs[8].device, ours[8].device) == ("\ufffd\0\0\0\x08device-8", "device-8")
    wrong = 0
    for offset, headers in messages.items():
        if headers is None:
            assert ours[offset][1:] == theirs[offset][1:] == (None, None, None)
            continue
        sequence = offset % 100 if offset % 2 else -offset if offset % 10 == 2 else offset
        assert ours[offset].device == f"device-{offset % 50}"
        assert abs(ours[offset].enqueued.timestamp() * 1000 - page.FIRST_TIME - 37 * offset) < 0.5
        assert ours[offset].sequence == sequence
        wrong += (theirs[offset].device, theirs[offset].sequence) != (ours[offset].device, str(sequence))
    assert wrong == page.DIFFER[6]


def test_schema_id_by_substring_differs(answers, messages):
    theirs, ours = answers(7)
    assert (theirs[0].schema_id, ours[0].schema_id) == (3_635_061_238, None)
    assert ours[0].guid == "d8aaa1f6-d2b6-c1ba-5e97-f5f843c901ee"
    assert (theirs[1].schema_id, ours[1].schema_id, ours[1].guid) == (17, 17, None)
    guids = 0
    for offset, headers in messages.items():
        value = last(headers, "__value_schema_id")
        result = theirs[offset].schema_id
        assert result == (value and int.from_bytes(value[1:5], "big"))
        if value is not None and value[0] == 1:
            guids += 1
            assert (ours[offset].schema_id, ours[offset].guid.replace("-", "")) == (None, value[1:].hex())
        else:
            assert (ours[offset].schema_id, ours[offset].guid) == (result, None)
    assert guids == page.DIFFER[7]


def test_from_json_of_spring_headers_differs(answers, messages):
    theirs, ours = answers(8)
    assert (theirs[1].customer, ours[1].customer) == (None, "acme")
    assert theirs[3].customer == ours[3].customer == "quoted"
    assert (theirs[5].total, ours[5].total) == (None, 3_000_000_005)
    wrong = 0
    for offset, headers in messages.items():
        customer, total = last(headers, "customer"), last(headers, "total")
        assert ours[offset].customer == (customer and customer.decode().strip('"'))
        assert ours[offset].total == (total and int(total))
        wrong += theirs[offset][1:] != ours[offset][1:]
    assert wrong == page.DIFFER[8]


def test_page_matches_measurement(samples):
    """Its table against the results that are recorded."""
    root = samples.parents[1]
    record = json.loads((root / "benches" / "record" / "from-your-query.json").read_text())
    rows = re.findall(r"^\| \[(\d)\. .*\| (\S+ times \w+) \|$", page.PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(SECTIONS) == list(range(1, 9))
    for (number, times), result in zip(rows, record["results"], strict=True):
        assert result["differ"] == page.DIFFER[int(number)]
        theirs, ours = (statistics.median(result["seconds"][side]) for side in ("theirs", "ours"))
        assert times == speed(theirs / ours)


def test_page_starts_by_showing_headers(spark, tmp_path, capsys):
    first, *queries = pages.blocks("docs/how-to/from-your-query.md")
    assert len(queries) == 2 * len(SECTIONS)
    pq.write_table(page.topic(), tmp_path / "orders.parquet")
    assert "orders.parquet" in first
    exec(first.replace("orders.parquet", f"{tmp_path}/orders.parquet"), {"spark": spark})
    assert "81 00 00 00 00 00 00 00 00" in capsys.readouterr().out
