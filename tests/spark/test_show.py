"""``show_headers``: what is printed of headers, and that the frame stays as it is."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs
from tests.spark.frames import HEADERS


def frame_of(spark, rows, **others):
    source = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    return spark.createDataFrame(pa.table({**others, "headers": pa.array(source, HEADERS)}))


def shown(capsys, df, *args, **options) -> list[str]:
    capsys.readouterr()
    assert lhs.show_headers(df, **options) is None
    return capsys.readouterr().out.splitlines()


def test_values_show_as_text_hex_null_or_none(spark, capsys):
    df = frame_of(
        spark,
        [
            [("tenant", "Zürich".encode()), ("retry", b"\0\0\0\3"), ("note", None), ("note", b""), ("n", b"null")],
            None,
            [],
        ],
        offset=pa.array([7, 8, 9]),
    )
    assert shown(capsys, df) == [
        "offset  header  key     value        bytes",
        "──────  ──────  ──────  ───────────  ─────",
        '7       0       tenant  "Zürich"     7',
        "        1       retry   00 00 00 03  4",
        "        2       note    null",
        '        3       note    ""           0',
        '        4       n       "null"       4',
        "8               null",
        "9               none",
    ]


def test_keys_are_shown_unambiguously(spark, capsys):
    """A key that is empty, null, or has blanks or quotes is told from one that looks like it."""
    keys = ["", " a", 'q"', "null", None, "tab\t", "señal-📦", "株式"]
    lines = shown(capsys, frame_of(spark, [[(key, b"v") for key in keys]]))
    assert [line.split(maxsplit=1)[1].rsplit('"v"', 1)[0].rstrip() for line in lines[2:]] == [
        '""', '" a"', "'q\"'", '"null"', "null", '"tab\\t"', "señal-📦", "株式",
    ]  # fmt: skip
    # Wide characters take two places, so that the values stand under each other.
    assert lines[2].index('"v"') == lines[8].index('"v"') + 1 == lines[9].index('"v"') + 2


@pytest.mark.spark_only
def test_non_utf8_key_is_shown_as_hex(spark, capsys):
    """It would reach Python with other characters, or not at all."""
    header = F.struct(F.lit(b"k\xff").cast("string").alias("key"), F.lit(b"v").alias("value"))
    lines = shown(capsys, spark.range(1).select(F.array(header).alias("headers")))
    assert lines[2:] == ['0       6b ff  "v"    1']


def test_long_values_are_truncated(spark, capsys):
    df = frame_of(spark, [[("k" * 50, b"t" * 50), ("b", b"\xff" * 50)]], topic=pa.array(["p" * 50]))
    lines = shown(capsys, df, width=12)
    assert lines[2].split() == ["ppppppppppp…", "0", "kkkkkkkkkkk…", '"tttttttttt…', "50"]
    assert lines[3].split() == ["1", "b", "ff", "ff", "ff", "ff", "…", "50"]
    whole = shown(capsys, df, width=None)
    assert whole[2].split() == ["p" * 50, "0", "k" * 50, '"' + "t" * 50 + '"', "50"]
    assert whole[3].split() == ["1", "b", *["ff"] * 50, "50"]


def test_number_of_shown_messages_is_noted(spark, capsys):
    df = frame_of(spark, [[("k", b"v")]] * 3).coalesce(1)
    assert shown(capsys, df, n=2)[4:] == ["only the first 2 messages are shown: raise n= for more"]
    assert shown(capsys, df, n=1)[3:] == ["only the first 1 message is shown: raise n= for more"]
    assert len(shown(capsys, df, n=3)) == 5
    assert shown(capsys, df.limit(0)) == ["header  key  value  bytes", "──────  ───  ─────  ─────"]


def test_message_position_columns_are_shown(spark, capsys, samples):
    orders = spark.read.parquet(str(samples / "orders-0.parquet")).where("offset = 1")
    before = orders.schema
    assert shown(capsys, orders)[0].split()[:3] == ["topic", "partition", "offset"]
    named = shown(capsys, orders, keep=["offset", "offset", "value"])
    assert named[0].split()[:4] == ["offset", "offset", "value", "header"]
    assert shown(capsys, orders, keep=[])[2].startswith(
        '0       traceparent        "00-2a5067fd0af8b88cadabb39e4a056deb'
    )
    assert orders.schema == before


def test_control_characters_are_not_printed(spark, capsys):
    df = frame_of(spark, [[("\x1b[2J", b"\x1b[2J")]], topic=pa.array(["\x1b[2J\n"]))
    lines = shown(capsys, df)
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)
    assert lines[2].split() == ["\\x1b[2J\\n", "0", "1b", "5b", "32", "4a", "1b", "5b", "32", "4a", "4"]


def test_typed_headers_are_shown(spark, capsys):
    """Types and keys that are no text have columns of their own."""
    iggy = lh.encode([("tenant", lh.String("acme")), (lh.Int32(3), lh.UInt8(7))], "iggy")
    ints = lh.encode([(-7, b"v")], "kip82-int")
    values = spark.createDataFrame([(iggy, ints)], "iggy binary, ints binary")
    typed = lhs.decode_headers(values, "iggy", column="iggy", keep=[])
    assert shown(capsys, typed) == [
        "header  key type  key          type    value   bytes",
        "──────  ────────  ───────────  ──────  ──────  ─────",
        '0       string    tenant       string  "acme"  4',
        "1       int32     00 00 00 03  uint8   07      1",
    ]
    assert shown(capsys, lhs.decode_headers(values, "kip82-int", column="ints", keep=[]))[2] == '0       -7   "v"    1'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "header"}, "unknown column 'header': did you mean 'headers'?"),
        ({"column": "value"}, "column 'value' is binary, and headers are array<struct<key:string,value:binary>>: decode_headers reads"),
        ({"column": "many"}, "column 'many' is array<bigint>, and headers are array<struct<key:string,value:binary>>"),
        ({"keep": ["ofset"]}, "unknown column 'ofset': did you mean 'offset'?"),
        ({"n": 0}, "n must be at least 1, and is 0"),
        ({"n": True}, "n must be int, not bool"),
        ({"width": "wide"}, "width must be int, not str"),
    ],
)  # fmt: skip
def test_show_rejects_frames_it_cannot_print(spark, options, message):
    df = frame_of(
        spark, [None], offset=pa.array([1]), value=pa.array([b""]), many=pa.array([[1]], pa.list_(pa.int64()))
    )
    with pytest.raises((TypeError, ValueError)) as raised:
        lhs.show_headers(df, **options)
    assert str(raised.value).startswith(message)


def test_show_of_stream_names_way_to_print_it(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="and this is a stream: use foreachBatch"):
        lhs.show_headers(stream, column="value")
