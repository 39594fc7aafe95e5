"""Arrow data of other libraries that breaks the rules: it is refused, and no byte outside of a buffer is read."""

from __future__ import annotations

import ctypes
import io
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from letterhead import _native
from letterhead import arrow as lha
from letterhead.errors import EncodeError
from letterhead.where.program import Program, Step
from tests.helpers.c_structures import Array, Stream, Structure, binary, lists, numbers, view, views
from tests.helpers.operations_by_name import apply

FAR = 1 << 30


def changed(structure: Structure, part: str = "array", **fields: Any) -> Structure:
    """Set fields of the schema or the array."""
    for name, value in fields.items():
        setattr(getattr(structure, part), name, value)
    return structure


def deep(levels: int) -> Structure:
    """Return lists of lists of bytes."""
    column = binary([0, 0])
    for _ in range(levels):
        column = Structure(b"+l", 1, [None, numbers(0, 1)], [column.named(b"element")])
    return column


def without_child() -> Structure:
    """Return a list whose child is a null pointer."""
    column = lists([0, 2])
    column.child_arrays[0] = None
    return column


def without_child_schema() -> Structure:
    """Return a list whose child's schema is a null pointer."""
    column = lists([0, 2])
    column.child_schemas[0] = None
    return column


def short_child() -> Structure:
    """Return a list of structs, one column of which has a row less."""
    return lists([0, 2], keys=binary([0, 1], b"ab", format=b"u"))


MALFORMED: dict[str, Callable[[], Structure]] = {
    "negative length": lambda: changed(binary([0, 1]), length=-1),
    "huge length": lambda: changed(binary([0, 1]), length=(1 << 63) - 1),
    "negative offset": lambda: changed(binary([0, 1]), offset=-1),
    "huge offset": lambda: changed(binary([0, 1]), offset=(1 << 63) - 1),
    "more nulls than rows": lambda: changed(binary([0, 1]), null_count=2),
    "nulls without their buffer": lambda: changed(binary([0, 1]), null_count=1),
    "no buffers": lambda: changed(binary([0, 1]), n_buffers=0),
    "a buffer less": lambda: changed(binary([0, 1]), n_buffers=2),
    "a negative number of buffers": lambda: changed(binary([0, 1]), n_buffers=-1),
    "no pointer to buffers": lambda: changed(binary([0, 1]), buffers=None),
    "no offsets": lambda: Structure(b"z", 1, [None, None, b"abc"]),
    "no values": lambda: Structure(b"z", 1, [None, numbers(0, 3), None]),
    "views without lengths": lambda: changed(views(view(13)), n_buffers=2),
    "views with a null for lengths": lambda: Structure(b"vz", 1, [None, view(13), b"\0" * 32, None]),
    "views with a negative length": lambda: Structure(b"vz", 1, [None, view(13), b"\0" * 32, numbers(-1, width=8)]),
    "no children": lambda: changed(lists([0, 2]), n_children=0),
    "a negative number of children": lambda: changed(lists([0, 2]), n_children=-1),
    "no pointer to children": lambda: changed(lists([0, 2]), children=None),
    "a null child": without_child,
    "a null child's schema": without_child_schema,
    "a negative number of children in the schema": lambda: changed(lists([0, 2]), "schema", n_children=-1),
    "no pointer to children in the schema": lambda: changed(lists([0, 2]), "schema", children=None),
    "no children in the schema": lambda: changed(lists([0, 2]), "schema", n_children=0),
    "no format": lambda: changed(binary([0, 1]), "schema", format=None),
    "a released schema": lambda: changed(binary([0, 1]), "schema", release=None),
    "a format that is not UTF-8": lambda: Structure(b"\xff", 1, [None]),
    "an unknown format": lambda: Structure(b"?", 1, [None]),
    "a format without its number": lambda: Structure(b"w:", 1, [None, b""]),
    "a format with a negative number": lambda: Structure(b"w:-5", 1, [None, b""]),
    "a list with a negative number": lambda: Structure(b"+w:-5", 1, [None], [binary([0, 1])]),
    "a name that is not UTF-8": lambda: binary([0, 1]).named(b"\xff\xfe"),
    "a nested name that is not UTF-8": lambda: Structure(b"+s", 1, [None], [binary([0, 1]).named(b"\xff")]),
    "types inside each other": lambda: deep(1000),
    "a child with fewer rows": short_child,
    "a dictionary without values": lambda: changed(Structure(b"i", 1, [None, numbers(0)]), "schema", dictionary=None),
}


def dictionary(format: bytes, values: Structure | None) -> Structure:
    """Return a dictionary with indices of a format."""
    column = Structure(format, 1, [None, numbers(0)])
    if values is not None:
        column.schema.dictionary = ctypes.addressof(values.schema)
        column.array.dictionary = ctypes.addressof(values.array)
    return column


def pair(format: bytes = b"+s") -> Structure:
    """Return a column of a key and a value."""
    return Structure(format, 1, [None], [binary([0, 1]).named(b"key"), binary([0, 1]).named(b"value")])


def ends(format: bytes = b"i") -> Structure:
    """Return the ends of one run, which are never null."""
    return changed(Structure(format, 1, [None, numbers(1)]), "schema", flags=0)


LEAF = binary([0, 1])
NESTED: dict[str, Callable[[list[Structure]], Structure]] = {
    "+l": lambda children: Structure(b"+l", 1, [None, numbers(0, 1)], children),
    "+L": lambda children: Structure(b"+L", 1, [None, numbers(0, 1, width=8)], children),
    "+vl": lambda children: Structure(b"+vl", 1, [None, numbers(0), numbers(1)], children),
    "+vL": lambda children: Structure(b"+vL", 1, [None, numbers(0, width=8), numbers(1, width=8)], children),
    "+w:1": lambda children: Structure(b"+w:1", 1, [None], children),
    "+m": lambda children: Structure(b"+m", 1, [None, numbers(0, 1)], children),
    "+r": lambda children: Structure(b"+r", 1, [], children),
    "+s": lambda children: Structure(b"+s", 1, [None], children),
    "+ud:0,1": lambda children: Structure(b"+ud:0,1", 1, [b"\0", numbers(0)], children),
    "+us:0,1": lambda children: Structure(b"+us:0,1", 1, [b"\0"], children),
}
"""Columns of one row of a nested type, with any children."""

RIGHT: dict[str, Callable[[], list[Structure]]] = {
    **dict.fromkeys(("+l", "+L", "+vl", "+vL", "+w:1"), lambda: [binary([0, 1])]),
    "+m": lambda: [pair()],
    "+r": lambda: [ends(), binary([0, 1])],
    **dict.fromkeys(("+s", "+ud:0,1", "+us:0,1"), lambda: [binary([0, 1]), binary([0, 1])]),
}

WRONG: dict[str, Callable[[], Structure]] = {
    **{
        f"{format} of {count} children": lambda format=format, count=count: NESTED[format](
            [binary([0, 1]) for _ in range(count)]
        )
        for format in NESTED
        for count in range(4)
        if count != len(RIGHT[format]()) and format != "+s"
    },
    "a map of bytes": lambda: NESTED["+m"]([binary([0, 1])]),
    "a map of a union": lambda: NESTED["+m"]([pair(b"+us:0,1")]),
    "a map of three columns": lambda: NESTED["+m"]([Structure(b"+s", 1, [None], [binary([0, 1]) for _ in range(3)])]),
    "a map of a dictionary": lambda: NESTED["+m"]([dictionary(b"i", binary([0, 1]))]),
    "runs that end in text": lambda: NESTED["+r"]([binary([0, 1], format=b"u"), binary([0, 1])]),
    "runs that end in unsigned numbers": lambda: NESTED["+r"]([ends(b"I"), binary([0, 1])]),
    "runs that end in a dictionary": lambda: NESTED["+r"]([dictionary(b"i", ends()), binary([0, 1])]),
    "a size that is no number": lambda: Structure(b"+w:x", 1, [None], [binary([0, 1])]),
    "a list without a size": lambda: Structure(b"+w", 1, [None], [binary([0, 1])]),
    "a union of a negative type": lambda: Structure(b"+us:-1,1", 1, [b"\0"], RIGHT["+us:0,1"]()),
    "a union of one type twice": lambda: Structure(b"+us:1,1", 1, [b"\1"], RIGHT["+us:0,1"]()),
    "a union without types": lambda: Structure(b"+us:", 1, [b"\0"], RIGHT["+us:0,1"]()),
    "an unknown nested type": lambda: Structure(b"+x", 1, [None], [binary([0, 1])]),
    "bytes with a child": lambda: Structure(b"z", 1, [None, numbers(0, 1), b"a"], [binary([0, 1])]),
    "text as indices": lambda: dictionary(b"u", binary([0, 1])),
    "fractions as indices": lambda: dictionary(b"f", binary([0, 1])),
    "lists as indices": lambda: changed(
        NESTED["+l"]([binary([0, 1])]), "schema", dictionary=ctypes.addressof(LEAF.schema)
    ),
    "a dictionary of wrong values": lambda: dictionary(b"i", NESTED["+m"]([binary([0, 1])])),
}
"""Types whose children, sizes or indices do not fit."""


OFFSETS: dict[str, Callable[[], Structure]] = {
    "negative": lambda: binary([-5, 1]),
    "negative last": lambda: binary([0, -1]),
    "decreasing": lambda: binary([0, 10, 5]),
    "outside and back": lambda: binary([0, FAR, 5]),
    "decreasing, of 64 bits": lambda: binary([0, FAR << 20, 5], format=b"Z"),
    "negative, of 64 bits": lambda: binary([-(1 << 40), 5], format=b"Z"),
    "of text": lambda: binary([0, FAR, 5], format=b"u"),
    "of long text": lambda: binary([0, FAR, 5], format=b"U"),
    "a view outside": lambda: views(view(40)),
    "a view far outside": lambda: views(view(13, offset=FAR)),
    "a view into no buffer": lambda: views(view(13, buffer=1)),
    "a view into a negative buffer": lambda: views(view(13, buffer=-1)),
    "a view of negative length": lambda: views(view(-1)),
    "a view outside after one inside": lambda: views(view(13), view(33)),
    "a view of text outside": lambda: views(view(40), format=b"vu"),
    "a view of text that is not UTF-8": lambda: views(view(13), data=b"\xff" * 32, format=b"vu"),
}

LISTS: dict[str, Callable[[], Structure]] = {
    "offsets outside of the elements": lambda: lists([0, 3]),
    "offsets far outside": lambda: lists([0, FAR]),
    "offsets outside and back": lambda: lists([0, FAR, 2]),
    "negative offsets": lambda: lists([-4, 2]),
    "keys with decreasing offsets": lambda: lists([0, 2], binary([0, FAR, 2], b"ab", format=b"u")),
    "keys with negative offsets": lambda: lists([0, 2], binary([-9, 1, 2], b"ab", format=b"u")),
    "long keys with offsets outside": lambda: lists([0, 2], binary([0, FAR << 9, 2], b"ab", format=b"U")),
    "keys that are not UTF-8": lambda: lists([0, 2], binary([0, 1, 2], b"\xff\xfe", format=b"u")),
    "a character across two keys": lambda: lists([0, 2], binary([0, 1, 2], "é".encode(), format=b"u")),
    "keys that are views outside": lambda: lists([0, 2], views(view(40), view(13), format=b"vu")),
    "values with decreasing offsets": lambda: lists([0, 2], None, binary([0, FAR, 2], b"12")),
    "values that are views outside": lambda: lists([0, 2], None, views(view(13), view(40))),
}


# What pyarrow and numpy read, which verify nothing.
THROUGH_PYARROW: dict[str, Callable[[Any], Any]] = {
    "rfc3339": lambda column: lha.rfc3339(column, errors="null"),
    "traceparent": lambda column: lha.traceparent(column, errors="null"),
    "schema_id": lambda column: lha.schema_id(column, errors="null"),
    "by_schema_id": lambda column: list(lha.by_schema_id(column, errors="null")),
    "trace_links": lambda column: lha.trace_links(column, "kafka", errors="null"),
    "scan": lambda column: lha.scan(column, "kafka"),
    "edit": lambda column: lha.edit(column, "kafka", replace={"a": lambda values: values}, errors="null"),
    "edit by values": lambda column: lha.edit(pa.array([b"\0"]), "kafka", set={"a": column}),
    "edit without case": lambda column: lha.edit(column, "kafka", drop=["a"], ignore_case=True, errors="null"),
}

WAYS: dict[str, Callable[[Any], Any]] = {
    "decode": lambda column: lha.decode(column, "kafka", errors="column"),
    "decode as views": lambda column: lha.decode(column, "kafka", errors="column", views=True),
    "select": lambda column: lha.select(column, {"a": "string"}, errors="column"),
    "convert": lambda column: lha.convert(column, "kafka", target="kip82-int", errors="column", on_loss="drop"),
    "messages": lambda column: lha.messages(column, "record-batch", errors="column"),
    "validate": lambda column: lha.validate(column, "kafka"),
    "amqp": lambda column: lha.amqp(column, "string", errors="null"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_structure_raises_type_error(case: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        apply("decode", MALFORMED[case](), "kafka")
    assert "failed inside" not in str(caught.value)


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_structure_in_stream_raises(case: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        list(apply("decode", Stream(MALFORMED[case]()), "kafka"))
    assert "failed inside" not in str(caught.value)


@pytest.mark.parametrize("case", WRONG)
def test_mismatched_nested_type_is_rejected(case: str) -> None:
    for column in (WRONG[case](), Stream(WRONG[case]())):
        for read in (_native.checked, lambda column: apply("decode", column, "kafka")):
            with pytest.raises(TypeError) as caught:
                read(column)
            assert "failed inside" not in str(caught.value)
            assert len(str(caught.value)) > 20
            column = WRONG[case]()


@pytest.mark.parametrize("format", NESTED)
def test_nested_type_with_matching_children_is_read(format: str) -> None:
    column = pa.array(_native.checked(NESTED[format](RIGHT[format]())))
    column.validate(full=True)
    assert len(column) == 1


def test_self_referencing_types_are_rejected() -> None:
    column = pair()
    for index in range(2):
        column.child_schemas[index] = ctypes.addressof(column.schema)
    with pytest.raises(TypeError, match="too deeply, or too many"):
        apply("decode", column, "kafka")


# Types that no operation of the core reads, and that are passed on.
OUTSIDE: dict[str, Callable[[], Structure]] = {
    "an index outside of its dictionary": lambda: Structure(b"+s", 1, [None], [outside_dictionary().named(b"a")]),
    "a map outside of its entries": lambda: Structure(b"+m", 1, [None, numbers(0, 2)], [pair()]),
    "a map of text that is not UTF-8": lambda: NESTED["+m"](
        [Structure(b"+s", 1, [None], [binary([0, 1], b"\xff", format=b"u"), binary([0, 1])])]
    ),
    "a list view outside": lambda: Structure(b"+vl", 1, [None, numbers(1), numbers(1)], RIGHT["+vl"]()),
    "a large list view outside": lambda: Structure(
        b"+vL", 1, [None, numbers(-1, width=8), numbers(1, width=8)], RIGHT["+vL"]()
    ),
    "a type that the union has not": lambda: Structure(b"+us:0,1", 1, [b"\5"], RIGHT["+us:0,1"]()),
    "an offset outside of a union": lambda: Structure(b"+ud:0,1", 1, [b"\0", numbers(7)], RIGHT["+ud:0,1"]()),
    "runs that end too early": lambda: changed(NESTED["+r"](RIGHT["+r"]()), length=2),
    "a list of text that is not UTF-8": lambda: NESTED["+w:1"]([binary([0, 1], b"\xff", format=b"u")]),
}


def outside_dictionary() -> Structure:
    """Return an index outside of its dictionary."""
    column = dictionary(b"i", binary([0, 1]))
    ctypes.memmove(column.buffers[1], numbers(7), 4)
    return column


@pytest.mark.parametrize("case", OUTSIDE)
def test_forwarded_structures_are_checked(case: str) -> None:
    with pytest.raises(TypeError, match="malformed"):
        _native.checked(OUTSIDE[case]())
    with pytest.raises((TypeError, ValueError), match="malformed"):
        list(_native.checked(Stream(OUTSIDE[case]())))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", OFFSETS)
def test_offsets_and_views_outside_buffers_are_rejected(case: str, way: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        WAYS[way](OFFSETS[case]())


@pytest.mark.parametrize("case", OFFSETS)
def test_bad_offsets_and_views_in_stream_are_rejected(case: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        list(_native.amqp_column(Stream(OFFSETS[case]()), "binary", errors="null"))


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("format", ["kafka", "iggy", "kip82-typed"])
def test_lists_with_wrong_offsets_are_not_encoded(case: str, format: str) -> None:
    with pytest.raises((TypeError, ValueError), match="malformed"):
        apply("encode", LISTS[case](), format, on_loss="drop")
    with pytest.raises((TypeError, ValueError), match="malformed"):
        apply("select", LISTS[case](), format, columns=[("a", "a", "string", "last", False, None, None)])


@pytest.mark.parametrize("way", THROUGH_PYARROW)
@pytest.mark.parametrize("case", [*OFFSETS, *MALFORMED])
def test_nothing_malformed_reaches_pyarrow(case: str, way: str) -> None:
    for column in ((OFFSETS | MALFORMED)[case](), Stream((OFFSETS | MALFORMED)[case]())):
        with pytest.raises((TypeError, ValueError)):
            THROUGH_PYARROW[way](column)


@pytest.mark.parametrize("case", OFFSETS)
def test_tables_with_bad_offsets_or_views_are_not_packed(case: str) -> None:
    column = OFFSETS[case]()
    table = Structure(b"+s", column.array.length, [None], [column.named(b"a")])
    with pytest.raises((TypeError, ValueError)):
        pa.chunked_array(lha.pack(Stream(table), format="kafka"))


def test_dictionary_with_bad_indices_is_not_packed() -> None:
    indices = pa.array([0, 7], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    for table in (pa.table({"a": column}), pa.record_batch({"a": column})):
        with pytest.raises(ValueError, match="out of bounds") as caught:
            lha.pack(table, format="kafka")
        assert "Traceback" not in str(caught.value)


def test_dictionary_with_bad_indices_is_read_by_no_convention() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["a"]), safe=False)
    for read in (lha.rfc3339, lha.traceparent, lha.schema_id):
        with pytest.raises((TypeError, ValueError)):
            read(column)


def test_misaligned_buffers_are_read() -> None:
    message = bytes.fromhex("020c74656e616e740861636d65")
    offsets = pa.py_buffer(b"\0" + numbers(0, 13, 26)).slice(1)
    column = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(message * 2)])
    assert lha.decode(column, "kafka").to_pylist() == [[{"key": "tenant", "value": b"acme"}]] * 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("offset", [FAR, -1])
def test_chunks_changed_before_their_turn_are_checked_again(threads: int, offset: int) -> None:
    class Chunks(Stream):
        """A stream of two chunks, the second of which is small."""

        def __init__(self) -> None:
            self.small = binary([0, 1], b"\0" * 16)
            super().__init__(binary([0] * 100_000))
            self.rest = [self.small.array, self.structure.array]

    stream = Chunks()
    results = apply("decode", stream, "kafka", threads=threads, errors="column")
    assert len(next(results)) == 99_999
    ctypes.memmove(stream.small.buffers[1], numbers(offset, 5), 8)
    with pytest.raises((TypeError, ValueError), match="malformed"):
        next(results)


def test_stream_may_be_released_twice() -> None:
    results = apply("decode", pa.chunked_array([[b"\0"]], pa.binary()), "kafka")
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = results.__arrow_c_stream__()
    stream = (ctypes.c_void_p * 5).from_address(get_pointer(capsule, b"arrow_array_stream"))
    get_next, release = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)(stream[1]), stream[3]
    for _ in range(2):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)(ctypes.addressof(stream))
        assert stream[3] is None
        assert get_next(ctypes.addressof(stream), ctypes.addressof(Array())) != 0


def test_structures_that_follow_rules_are_read() -> None:
    column = binary([0, 6, 6, 12], b"\x02\x02a\x02b" + b"\0" + b"\x02\x02a\x02b" + b"\0")
    rows = pa.array(apply("decode", column, "kafka", errors="column")).to_pylist()
    assert [row["headers"] is not None for row in rows] == [False, True, False]
    written = pa.array(apply("encode", lists([0, 0, 2]), "kafka")).to_pylist()
    assert written == [b"", bytes.fromhex("040261023102620232")]
    text = lists([0, 2], binary([0, 2, 4], "éü".encode(), format=b"u"))
    assert pa.array(apply("encode", text, "kafka")).to_pylist() == [b"\x04\x04\xc3\xa9\x021\x04\xc3\xbc\x022"]
    parts = views(view(15), numbers(1) + b"x" + bytes(11), data=b"\xa1\x0d" + b"a" * 13 + bytes(17))
    assert pa.array(_native.amqp_column(parts, "string", errors="null")).to_pylist() == ["a" * 13, None]


def test_view_of_null_is_ignored() -> None:
    column = views(view(40), view(15), data=b"\xa1\x0d" + b"a" * 13 + bytes(17))
    column.buffer_pointers[0] = None
    nulls = numbers(2)
    marked = Structure(
        b"vz", 2, [nulls, view(40) + view(15), b"\xa1\x0d" + b"a" * 13 + bytes(17), numbers(32, width=8)]
    )
    changed(marked, null_count=1)
    assert pa.array(_native.amqp_column(marked, "string")).to_pylist() == [None, "a" * 13]


def test_only_used_part_of_array_is_checked() -> None:
    column = changed(binary([0, FAR, 0, 2, 3], b"\0" * 4), length=2, offset=2)
    assert len(pa.array(apply("validate", column, "kafka"))) == 2


def test_elements_of_array_slice_are_checked() -> None:
    def headers(start: int) -> Structure:
        """Return a list of the last of three structs that are the end of six."""
        keys = binary([0, FAR, 0, 0, 1, start, 3], b"abc", format=b"u")
        values = binary([0, FAR, 0, 0, 1, 2, 3], b"123")
        struct = Structure(b"+s", 3, [None], [keys.named(b"key"), values.named(b"value")])
        return Structure(b"+l", 1, [None, numbers(2, 3)], [changed(struct, offset=3).named(b"element")])

    assert pa.array(apply("encode", headers(2), "kafka")).to_pylist() == [b"\x02\x02c\x023"]
    with pytest.raises((TypeError, ValueError), match="malformed"):
        apply("encode", headers(FAR), "kafka")


@pytest.mark.parametrize("key_type", [b"z", b"Z", b"vz"])
@pytest.mark.parametrize("list_type", [b"+l", b"+L", b"+m"])
def test_elements_outside_lists_are_not_read(list_type: bytes, key_type: bytes) -> None:
    """Keys that are converted to text: no list has the first two of four, which are broken."""
    width = 8 if key_type == b"Z" else 4
    keys = Structure(key_type, 4, [None, numbers(0, FAR, 0, 1, 2, width=width), b"a\xff"])
    if key_type == b"vz":
        short = [struct.pack("<i12s", 1, key) for key in (b"a", b"\xff")]
        keys = Structure(b"vz", 4, [None, view(FAR) + view(FAR) + short[0] + short[1], numbers(width=8)])
    values = binary([0, 1, 2, 3, 4], b"1234")
    headers = Structure(b"+s", 4, [None], [keys.named(b"key"), values.named(b"value")])
    offsets = numbers(2, 3, 4, width=8 if list_type == b"+L" else 4)
    column = Structure(list_type, 2, [None, offsets], [headers.named(b"element")])
    with pytest.raises(EncodeError, match="the key is null, or not UTF-8") as raised:
        apply("encode", column, "kafka")
    assert (raised.value.row, raised.value.code) == (1, "null_key")


# --- files -----------------------------------------------------------------------------------------------------------


def rewritten(column: pa.Array, before: bytes, number: int, by: int) -> pa.Array:
    """Write an IPC file of a column, replace a number after some bytes, and read it as pyarrow does."""
    sink = io.BytesIO()
    batch = pa.record_batch([column], ["data"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    old, new = before + struct.pack("<i", number), before + struct.pack("<i", by)
    assert data.count(old) == 1
    return pa.ipc.open_file(io.BytesIO(data.replace(old, new))).read_all().column("data").chunk(0)


ROWS = [b"x" * 65_000, b"y" * 56_789, b"z" * 10]


@pytest.mark.parametrize("way", ["decode", "validate", "amqp"])
@pytest.mark.parametrize("by", [FAR, -FAR, 1])
def test_file_with_bad_offsets_is_rejected(way: str, by: int) -> None:
    with pytest.raises((TypeError, ValueError)):
        WAYS[way](rewritten(pa.array(ROWS, pa.binary()), numbers(65_000), 121_789, by))


@pytest.mark.parametrize("way", ["decode", "validate", "amqp"])
@pytest.mark.parametrize("by", [FAR, -FAR, 200_000])
def test_file_with_bad_views_is_rejected(way: str, by: int) -> None:
    column = pa.array([b"x" * 100, b"y" * 99], pa.binary_view())
    with pytest.raises((TypeError, ValueError)):
        WAYS[way](rewritten(column, numbers(99) + b"yyyy" + numbers(0), 100, by))


def test_offsets_beyond_buffer_end_are_rejected_with_pyarrow() -> None:
    # Arrow's C interface has no lengths of these buffers, and pyarrow knows them.
    column = rewritten(pa.array(ROWS, pa.binary()), numbers(121_789), 121_799, 1 << 28)
    for input_column in (column, pa.chunked_array([column])):
        with pytest.raises(pa.ArrowInvalid):
            lha.decode(input_column, "kafka")


def test_file_with_bad_key_offsets_is_not_encoded() -> None:
    keys = ["k" * 65_000, "l" * 56_789, "m"]
    headers = [[{"key": key, "value": b"v"} for key in keys]]
    list_type = pa.list_(pa.struct([("key", pa.utf8()), ("value", pa.binary())]))
    for by in (FAR, -FAR):
        with pytest.raises((TypeError, ValueError)):
            lha.encode(rewritten(pa.array(headers, list_type), numbers(65_000), 121_789, by), "kafka")


def test_non_utf8_field_name_in_file_raises() -> None:
    column = pa.StructArray.from_arrays([pa.array([b"x"])], fields=[pa.field(b"\xff", pa.binary())])
    with pytest.raises(TypeError, match="the name of a field is not UTF-8"):
        lha.decode(column, "kafka")


# --- conditions ------------------------------------------------------------------------------------------------------

TESTS = [("==", ["a"]), ("contains", ["b"]), ("matches", ["c.*"]), ("in", ["a", "b"]), ("is_null", [])]


def truths(column: Any, test: str, literals: list[Any], rows: int) -> list[bool | None]:
    """Return whether a test is true of each value of a column."""
    found: list[bool | None] = pa.array(
        _native.truths(Program([], ["a"], [Step(test, 0, "any", literals)]), [column], rows)
    ).to_pylist()
    return found


@pytest.mark.parametrize(("test", "literals"), TESTS)
def test_condition_ignores_view_of_null(test: str, literals: list[Any]) -> None:
    rows = view(40, buffer=9) + view(40, offset=FAR) + numbers(1) + b"a" + bytes(11)
    column = changed(Structure(b"vu", 3, [numbers(4), rows, b"\0" * 32, numbers(32, width=8)]), null_count=2)
    expected = [None, None, test in ("==", "in")] if test != "is_null" else [True, True, False]
    assert truths(column, test, literals, 3) == expected


@pytest.mark.parametrize(("test", "literals"), TESTS)
@pytest.mark.parametrize("values", [b"n", b"w:0"])
def test_condition_on_few_rows_does_not_read_huge_dictionary(values: bytes, test: str, literals: list[Any]) -> None:
    column = dictionary(b"i", Structure(values, 1 << 50, [] if values == b"n" else [None, b""]))
    unknown = values == b"n" and test != "is_null"
    assert truths(column, test, literals, 1) == [None if unknown else values == b"n"]


HUGE: dict[str, Callable[[], Structure]] = {
    "a union": lambda: Structure(
        b"+ud:0,1", 2, [b"\1\0", numbers(0, 0)], [Structure(b"n", 1 << 50, []), binary([0, 1], b"a", format=b"u")]
    ),
    "runs": lambda: NESTED["+r"]([ends(), dictionary(b"i", Structure(b"n", 1 << 50, []))]),
    "a dictionary of a dictionary": lambda: dictionary(b"i", dictionary(b"i", Structure(b"n", 1 << 50, []))),
}
"""Columns of a few rows that refer to a few of very many nulls."""


@pytest.mark.parametrize("name", HUGE)
def test_nulls_referable_by_column_take_no_memory(name: str) -> None:
    column = HUGE[name]()
    expected = [False, True] if name == "a union" else [True]
    assert truths(column, "is_null", [], len(expected)) == expected
    if name != "a dictionary of a dictionary":
        with pytest.raises(TypeError, match="is compared with no literal"):
            truths(HUGE[name](), "==", ["a"], len(expected))


def test_nulls_of_runs_and_unions_are_found() -> None:
    for ends_type in (pa.int16(), pa.int32(), pa.int64()):
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], ends_type), pa.array(["a", None, "b"]))
        assert truths(runs, "is_null", [], 5) == [False, False, True, False, False]
        assert truths(runs.slice(1, 3), "is_null", [], 3) == [False, True, False]
    types = pa.array([0, 1, 0], pa.int8())
    union = pa.UnionArray.from_sparse(types, [pa.array(["a", "b", None]), pa.array([1, 2, 3])])
    assert truths(union, "is_null", [], 3) == [False, False, True]
    assert truths(union.slice(2), "is_null", [], 1) == [True]


@pytest.mark.parametrize("indices", [[0, None, 1, 2], [None, 2, 2, 0, 1, 1]])
@pytest.mark.parametrize(("test", "literals"), TESTS)
def test_condition_on_dictionary_equals_one_on_values(test: str, literals: list[Any], indices: list[Any]) -> None:
    values = pa.array(["a", None, "bc", *["z"] * 2])
    column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values)
    for part in (column, column.slice(1), column.slice(0, 2)):
        assert truths(part, test, literals, len(part)) == truths(part.cast(pa.string()), test, literals, len(part))
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    assert truths(empty, test, literals, 2) == [True, True] if test == "is_null" else [None, None]


def test_sparse_union_with_short_child_is_rejected_even_unused() -> None:
    union = Structure(b"+us:0,1", 3, [b"\0" * 3], [binary([0, 1, 1, 1]), binary([0, 1])])
    with pytest.raises(TypeError, match="fewer rows than its parent"):
        _native.checked(Structure(b"+l", 1, [None, numbers(0, 0)], [union.named(b"element")]))
