"""AMQP primitives: compared with Qpid Proton and with the decoder of one value, and with invalid values."""

import json
import subprocess
import sys
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.conventions import amqp
from letterhead.conventions.columns import ParseAmqp
from letterhead.operations import DecodeOptions, Select
from letterhead.types import SELECT_TYPES
from tests.helpers.extras import spelled_out
from tests.helpers.strategies import amqp_values
from tests.reference import types

# What Qpid Proton 0.40 wrote, and how it read every code of the standard.
PROTON = [json.loads(line) for line in (Path(__file__).parent.parent / "samples/amqp.jsonl").read_text().splitlines()]


def of_proton(case):
    """Return the cases of a type, the bytes first."""
    return [(bytes.fromhex(line["hex"]), line) for line in PROTON if line["case"] == case]


def plain(value):
    """Return a value in the form of the cases: bytes in hex."""
    return value.hex() if isinstance(value, bytes) else value


@pytest.mark.parametrize(("data", "line"), of_proton("value"), ids=lambda value: repr(value)[:20])
def test_decode_reads_output_of_proton(data, line):
    assert plain(amqp.decode(data).value) == line["value"]
    read = lha.amqp(pa.array([data, None, b"\x40"]), line["type"]).to_pylist()
    assert [plain(value) for value in read] == [line["value"], None, None]


@pytest.mark.parametrize("column", ["binary", "large_binary", "binary_view", "string", "large_string", "string_view"])
def test_columns_of_bytes_and_of_text_are_read(column: str) -> None:
    rows = pa.array([b"\x54\x03", None, b"\x40", b"\x54\x04"]).cast(getattr(pa, column)())
    assert lha.amqp(rows, "int32").to_pylist() == [3, None, None, 4]


def test_timestamp_of_proton_becomes_a_timestamp():
    rows = pa.array([data for data, _ in of_proton("timestamp")])
    assert amqp.decode(rows[0].as_py()) == ("timestamp", 1_700_000_000_123)
    assert lha.amqp(rows, "timestamp_ms").cast(pa.int64()).to_pylist() == [1_700_000_000_123, -1]
    assert lha.amqp(rows, "timestamp_ms").type == pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(("data", "line"), of_proton("code"), ids=lambda value: repr(value)[:20])
def test_decode_reads_every_code_like_proton(data, line):
    read = amqp.decode(data)
    assert (read.type, plain(read.value)) == (line["type"], line["value"])


def test_every_code_has_a_case_of_proton():
    assert [data[0] for data, _ in of_proton("code")] == list(amqp.CODES)


@pytest.mark.parametrize(("data", "line"), of_proton("refused"), ids=lambda value: repr(value)[:20])
def test_rejected_types_are_named(data, line):
    with pytest.raises(lh.DecodeError, match=f"the value is {line['name']}, which is no single value") as caught:
        amqp.decode(data)
    assert (caught.value.code, caught.value.byte_offset) == ("unknown_type", 0)


BAD = [
    ("int64", "", "truncated", 0, "no bytes where AMQP has at least the code of a type"),
    ("int64", "99", "unknown_type", 0, "the value is of code 0x99, which AMQP does not have"),
    ("int64", "7101020304", "wrong_type", 0, "the value is int and int64 was requested"),
    ("int64", "8101", "truncated", 1, "the bytes end inside the long"),
    ("int64", "550102", "trailing_bytes", 2, "1 byte after the long"),
    ("int64", "4000", "trailing_bytes", 1, "1 byte after the null"),
    ("bool", "5602", "bad_bool", 1, "the byte is not a boolean: 0 or 1"),
    ("string", "a1", "truncated", 1, "the bytes end inside the length"),
    ("string", "b1000000", "truncated", 1, "the bytes end inside the length"),
    ("string", "a10561", "truncated", 1, "5 bytes announced and 1 there"),
    ("string", "b1ffffffff61", "truncated", 1, "4294967295 bytes announced and 1 there"),
    ("string", "a1016162", "trailing_bytes", 3, "1 byte after the string"),
    ("string", "a102ff61", "value_not_utf8", 2, "the value is not UTF-8"),
    ("char", "730000d800", "out_of_range", 1, "the number is no character of Unicode"),
    ("char", "7300110000", "out_of_range", 1, "the number is no character of Unicode"),
]


@pytest.mark.parametrize(("type", "data", "code", "byte", "message"), BAD)
def test_errors_name_code_byte_and_reason(type, data, code, byte, message):
    good = {"int64": "5507", "bool": "41", "string": "a10161", "char": "7300000041"}[type]
    rows = pa.array([bytes.fromhex(good), None, bytes.fromhex(data), bytes.fromhex(good)], pa.binary())
    with pytest.raises(lh.DecodeError) as caught:
        lha.amqp(rows, type)
    error = caught.value
    assert (error.format, error.code, error.row, error.byte_offset) == ("amqp", code, 2, byte)
    assert str(error) == f"amqp: {message} (byte {byte}, row 2)"
    values = lha.amqp(rows, type, errors="null").to_pylist()
    assert (values[0], values[1], values[2], values[3]) == (values[3], None, None, values[0])
    assert values[0] is not None
    column = lha.amqp(rows, type, errors="column")
    assert column.field("value").to_pylist() == values
    detail = {"code": code, "message": message, "byte_offset": byte, "header": None, "key": None, "column": None}
    assert column.field("error").to_pylist() == [None, None, [detail], None]
    if code != "wrong_type":
        with pytest.raises(lh.DecodeError, match=message):
            amqp.decode(bytes.fromhex(data))


@given(rows=st.lists(st.none() | amqp_values, max_size=12), type=st.sampled_from([*amqp.READ_AS]),
       dialect=st.sampled_from(["arrow", "spark"]), cut=st.integers(0, 3))  # fmt: skip
def test_column_decoder_agrees_with_value_decoder(rows, type, dialect, cut):
    values, details = [], []
    for data in rows[cut:]:
        try:
            values.append(None if data is None else types.read(f"{type}:amqp", data, dialect=dialect))
            details.append(None)
        except types.Misfit as misfit:
            values.append(None)
            detail = {"code": misfit.code, "message": misfit.message, "byte_offset": misfit.within}
            details.append([{**detail, "header": None, "key": None, "column": None}])
    column = ParseAmqp(type, errors="column", dialect=dialect)(pa.array(rows, pa.binary())[cut:])
    column.validate(full=True)
    assert column.field("error").to_pylist() == details
    assert spelt(column.field("value")) == [str(value) for value in values]
    nulls = ParseAmqp(type, errors="null", dialect=dialect)(pa.array(rows, pa.binary())[cut:])
    assert spelt(nulls) == spelt(column.field("value"))
    # The same bytes as the value of a header, and the same words about them.
    blocks = pa.array([lh.encode([("k", data)], "kafka") for data in rows[cut:]], pa.binary())
    requested = {"value": lh.field(f"{type}:amqp", key="k")}
    selected = Select("kafka", requested, DecodeOptions(errors="column"), dialect=dialect)(blocks)
    assert spelt(selected.field("value")) == spelt(column.field("value"))
    reported = selected.field("error").to_pylist()
    assert [said(error) for error in reported] == [said(error) for error in details]


def spelt(column):
    """Return values as text, because two NaN are not equal; decimals like their numbers, and times as numbers."""
    column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return [str(value) for value in column.to_pylist()]


def said(error):
    """Return the error of a value without its place."""
    return error and [(detail["code"], detail["message"]) for detail in error]


def test_field_accepts_only_the_types_that_amqp_has():
    for type in SELECT_TYPES:
        if type in amqp.READ_AS:
            assert lh.field(f"{type}:amqp").type == f"{type}:amqp"
        else:
            with pytest.raises(ValueError, match=f"type '{type}:amqp': AMQP has no {type}"):
                lh.field(f"{type}:amqp")


def test_select_reads_amqp_from_bytes_and_rejects_other_types():
    data = lh.encode([("k", lh.Binary(b"\x55\x07")), ("n", lh.Int64(9))], "iggy")
    columns = {"k": "int64:amqp", "n": "int64:amqp"}
    assert lh.select(data, columns, format="iggy") == {"k": 7, "n": 9}
    with pytest.raises(lh.DecodeError, match="the value is int64 and string was requested"):
        lh.select(data, {"n": "string:amqp"}, format="iggy")


def test_convert_rejects_types_of_amqp():
    with pytest.raises(ValueError, match="type 'int64:amqp': values are read so, and not converted from it"):
        lh.convert(lh.encode([("k", b"\x55\x07")], "kafka"), "kafka", target="iggy", types={"k": "int64:amqp"})


@pytest.mark.parametrize(("type", "code"), [("string", b"\xa1"), ("binary", b"\xa0")])
def test_result_is_split_at_the_limit_of_offsets(type, code):
    rows = [code + b"\x04abcd"] * 5 + [None, code + b"\x05\xe2\x82\xacuv"]
    column = pa.chunked_array([rows[:5], rows[5:]], pa.binary())
    whole = lha.amqp(column, type).to_pylist()
    for most, lengths in ((40, [5, 2]), (15, [3, 2, 2]), (5, [1, 1, 1, 1, 1, 2])):
        result = [pa.array(chunk) for chunk in _native.amqp_column(column, type, max_offset=most)]
        assert [len(chunk) for chunk in result] == lengths
        assert [data for chunk in result for data in chunk.to_pylist()] == whole
    with pytest.raises(lh.HeaderError, match="passes the 2 GiB"):
        _native.amqp_column(column.chunk(0), type, max_offset=7)


def test_bits_of_floats_are_kept():
    signalling = bytes.fromhex("7fa00001")
    read = lha.amqp(pa.array([b"\x72" + signalling]), "float32")
    assert read.buffers()[1].to_pybytes()[:4] == signalling[::-1]


def test_dialect_spark_returns_types_of_spark():
    def read_type(type):
        return ParseAmqp(type, dialect="spark")(pa.array([], pa.binary())).type

    assert read_type("uint8") == pa.int16()
    assert read_type("uint16") == pa.int32()
    assert read_type("uint32") == pa.int64()
    assert read_type("uint64") == pa.decimal128(20, 0)
    assert read_type("timestamp_ms") == pa.timestamp("us", "UTC")
    # What select makes of the same types.
    for type in amqp.READ_AS:
        for dialect in ("arrow", "spark"):
            selected = Select("kafka", {"v": type}, dialect=dialect)(pa.array([], pa.binary())).type.field("v").type
            assert ParseAmqp(type, dialect=dialect)(pa.array([], pa.binary())).type == selected


def test_stream_becomes_chunks_and_rows_count_across_them():
    chunks = pa.chunked_array([[b"\x55\x01"], [], [b"\x55\x02", b"\x55"]], pa.binary())
    assert lha.amqp(chunks.slice(0, 2), "int64").to_pylist() == [1, 2]
    assert lha.amqp(pa.chunked_array([], pa.binary()), "int64").type == pa.int64()
    with pytest.raises(lh.DecodeError, match=r"byte 1, row 2"):
        lha.amqp(chunks, "int64")


def test_columns_of_other_libraries_and_types_are_accepted():
    assert lha.amqp(polars.Series([b"\xa1\x02hi", None]), "string").to_pylist() == ["hi", None]
    for type in (pa.large_binary(), pa.binary_view()):
        assert lha.amqp(pa.array([b"\xa1\x02hi", None], type), "string").to_pylist() == ["hi", None]


def test_unknown_types_and_options_are_rejected():
    rows = pa.array([b"\x55\x01"])
    with pytest.raises(ValueError, match="type 'int128': AMQP has no int128"):
        lha.amqp(rows, "int128")
    with pytest.raises(ValueError, match="numbers of AMQP are big-endian, so 'int64' takes no suffix"):
        lha.amqp(rows, "int64:le")
    with pytest.raises(ValueError, match="unknown errors value 'ignore'"):
        lha.amqp(rows, "int64", errors="ignore")
    with pytest.raises(TypeError, match="column is int64, and amqp is read from binary or string"):
        lha.amqp(pa.array([1]), "int64")
    with pytest.raises(TypeError, match=r"a column is any Arrow array or stream .*, and this is list"):
        lha.amqp([b"\x55\x01"], "int64")


def test_missing_dependency_is_named():
    for module, call in (("pyarrow", "amqp(None, 'string')"), ("numpy", "rfc3339(None)")):
        code = f"import sys; sys.modules['{module}'] = None; from letterhead import arrow as lha; lha.{call}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        name = call.partition("(")[0]
        assert spelled_out(f"lha.{name} needs {module}: pip install 'letterhead[arrow]'") in done.stderr
    code = "import sys, letterhead as lh; lh.profile('opentelemetry'); lh.conventions.amqp.decode(b'@'); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_single_invalid_value_among_many_is_found():
    count = 3 * (1 << 16) + 5
    rows = [b"\x55\x01"] * count
    rows[-1] = b"\x55"
    column = pa.array(rows)
    assert lha.amqp(column[:-1], "int64").to_pylist() == [1] * (count - 1)
    with pytest.raises(lh.DecodeError, match=f"row {count - 1}"):
        lha.amqp(column, "int64")
    reported = lha.amqp(column, "int64", errors="column")
    assert (reported.field("value").null_count, reported.field("error").null_count) == (1, count - 1)
