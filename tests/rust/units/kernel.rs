//! Kernels compared with naive loops. Buffers end after the last byte that a kernel may read, so that Miri detects any
//! read beyond it.

use proptest::prelude::*;

use super::bitmap::Validity;
use super::buffer::{BinaryValues, Progress, Utf8, Values as _};
use super::decode::{self, decode, decode_and_select};
use super::encode::{convert, encode, max_converted_len};
use super::keys::{Keep, KeySet, Requested};
use super::layout::{Rules, TEXT, WireLayout as _};
use super::lists::{Bits, Columns, ListBlock, Names, Offsets, Strings, is_ascii, never_decrease};
use super::scan::{Scratch, SelectedValues, select, validate};
use super::typed_layout::{Kip82Layout, TypedLayout, Types};
use super::varint_layout::VarintLayout;
use super::{COPY, ROWS, RowBlock, SLACK, Span};
#[cfg(target_arch = "x86_64")]
use super::{ONLY_BASELINE, has_avx2};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, TypeCodes, ValueType};

type Header = (Vec<u8>, Option<Vec<u8>>);

const PROGRESS: Progress = Progress { bytes: 1, all: 2 };
const MANY: usize = usize::MAX;

fn varint(mut bits: u32, out: &mut Vec<u8>) {
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

fn written(headers: &[Header]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(headers.len() as u32 * 2, &mut out);
    for (key, value) in headers {
        varint(key.len() as u32 * 2, &mut out);
        out.extend(key);
        match value {
            Some(value) => {
                varint(value.len() as u32 * 2, &mut out);
                out.extend(value);
            }
            None => out.push(1),
        }
    }
    out
}

/// Rows in one buffer, followed by exactly as many bytes as kernels may read.
struct Rows {
    buffer: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

impl Rows {
    fn new(rows: &[Option<Vec<u8>>]) -> Self {
        let (mut buffer, mut places) = (Vec::new(), Vec::new());
        for row in rows {
            let start = buffer.len();
            buffer.extend(row.iter().flatten());
            places.push(row.as_ref().map(|_| (start, buffer.len())));
        }
        buffer.extend([0x2a; SLACK]);
        Rows { buffer, places }
    }

    fn of(rows: &[Vec<u8>]) -> Self {
        Rows::new(&rows.iter().cloned().map(Some).collect::<Vec<_>>())
    }

    fn block(&self) -> RowBlock<'_> {
        let mut block = RowBlock::default();
        for place in &self.places {
            let span = place.map(|(start, end)| Span::new(&self.buffer, start, end).expect("there is slack"));
            block.push(span);
        }
        block
    }
}

/// Number of rows that decode read, and their headers.
fn decoded(rows: &Rows, most: usize) -> (usize, Vec<Vec<Header>>) {
    decoded_by(rows, |block, lists| decode::<VarintLayout, _>(block, most, PROGRESS, lists))
}

fn decoded_by<'a>(
    rows: &'a Rows,
    read: impl FnOnce(&RowBlock<'a>, &mut decode::ListColumns<'_>) -> usize,
) -> (usize, Vec<Vec<Header>>) {
    let (mut keys, mut values) = (Utf8::<BinaryValues>::default(), BinaryValues::default());
    let (mut has_value, mut ends) = (Validity::default(), vec![0]);
    let mut lists = decode::ListColumns {
        keys: decode::KeyColumns::Text(&mut keys),
        types: None,
        values: &mut values,
        has_value: &mut has_value,
        ends: &mut ends,
    };
    let done = read(&rows.block(), &mut lists);
    assert_eq!((ends.len(), keys.count(), values.count()), (done + 1, ends[done] as usize, ends[done] as usize));
    let valid = bits(has_value);
    let (keys, values) = (runs(keys.into_inner()), runs(values));
    let header = |at: usize| (keys[at].clone(), valid[at].then(|| values[at].clone()));
    (done, ends.windows(2).map(|ends| (ends[0]..ends[1]).map(|at| header(at as usize)).collect()).collect())
}

fn runs(runs: BinaryValues) -> Vec<Vec<u8>> {
    let (offsets, bytes) = runs.into_parts();
    offsets.windows(2).map(|ends| bytes[ends[0] as usize..ends[1] as usize].to_vec()).collect()
}

fn bits(validity: Validity) -> Vec<bool> {
    let count = validity.count();
    let words = validity.into_bits();
    let get =
        |place: usize| words.as_ref().is_none_or(|words| u64::from_le(words[place / 64]) >> (place % 64) & 1 == 1);
    (0..count).map(get).collect()
}

fn validated(rows: &Rows) -> usize {
    validate::<VarintLayout>(&rows.block(), MANY, &mut Scratch::default())
}

/// Lengths on both sides of each boundary between code paths of the kernels.
const LENGTHS: [usize; 17] = [0, 1, 7, 8, 15, 16, 17, 32, 33, 62, 63, 64, 65, 127, 128, 8191, 8192];

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| b'a' + (at % 26) as u8).collect()
}

#[test]
fn headers_of_all_lengths_are_decoded() {
    let lengths = if cfg!(miri) { &LENGTHS[8..14] } else { &LENGTHS[..] };
    for key_len in lengths {
        for value_len in lengths.iter().map(|len| Some(*len)).chain([None]) {
            let headers = [(text(*key_len), value_len.map(|len| vec![0xf5; len])), (text(1), Some(vec![7]))];
            let rows = Rows::new(&[Some(written(&headers)), None, Some(vec![]), Some(written(&headers[1..]))]);
            let expected = vec![headers.to_vec(), vec![], vec![], headers[1..].to_vec()];
            assert_eq!(decoded(&rows, MANY), (4, expected), "{key_len} {value_len:?}");
            assert_eq!(validated(&rows), 4);
        }
    }
}

#[test]
fn truncated_or_long_row_is_left_and_earlier_ones_stay() {
    let headers = [(text(3), Some(text(70))), (text(70), None), (text(0), Some(vec![]))];
    let whole = written(&headers);
    let mut rows: Vec<Vec<u8>> = (1..whole.len()).map(|end| whole[..end].to_vec()).collect();
    rows.push([&whole[..], &[0]].concat());
    rows.push(vec![4, 2, b'k', 1]);
    rows.push(vec![1]);
    for bad in rows {
        let rows = Rows::of(&[whole.clone(), bad.clone(), whole.clone()]);
        assert_eq!(decoded(&rows, MANY), (1, vec![headers.to_vec()]), "{bad:?}");
        assert_eq!(validated(&rows), 1, "{bad:?}");
    }
}

#[test]
fn lengths_of_any_spelling_are_read_and_lost_bits_are_not() {
    let padded = vec![0x82, 0, 0x82, 0x80, 0x80, 0x80, 0, b'k', 0x84, 0x80, 0, b'v', b'w'];
    assert_eq!(decoded(&Rows::of(&[padded]), MANY), (1, vec![vec![(b"k".to_vec(), Some(b"vw".to_vec()))]]));
    let null = vec![2, 2, b'k', 0x81, 0];
    assert_eq!(decoded(&Rows::of(&[null]), MANY), (1, vec![vec![(b"k".to_vec(), None)]]));
    for bad in [
        vec![2, 2, b'k', 0x82, 0x80, 0x80, 0x80, 0x10, b'v'],
        vec![2, 3, b'k', 0],
        vec![0x82, 0x80, 0x80, 0, 2, b'k', 1],
    ] {
        assert_eq!(decoded(&Rows::of(std::slice::from_ref(&bad)), MANY).0, 0, "{bad:?}");
    }
}

#[test]
fn a_row_with_too_many_headers_is_left() {
    let headers = vec![(text(1), None); 70];
    let rows = Rows::of(&[written(&headers[..3]), written(&headers)]);
    assert_eq!(decoded(&rows, 70).0, 2);
    assert_eq!(decoded(&rows, 69), (1, vec![headers[..3].to_vec()]));
    assert_eq!(validate::<VarintLayout>(&rows.block(), 2, &mut Scratch::default()), 0);
}

#[test]
fn non_utf8_key_is_found_at_any_split() {
    let row = |keys: &[&[u8]]| written(&keys.iter().map(|key| (key.to_vec(), None)).collect::<Vec<_>>());
    let long = [&text(40)[..], "é".as_bytes()].concat();
    let good = row(&["é".as_bytes(), b"k", &long, "\u{10ffff}".as_bytes(), &text(100)]);
    let bad: [&[&[u8]]; 6] = [
        &[&[0xc3], &[0xa9]],
        &[b"k", &[0xa9]],
        &[&long[..41], b"k"],
        &[&[0xff]],
        &[&text(63), &[&text(80)[..], &[0xc3]].concat()],
        &["é".as_bytes(), &[0xf0, 0x90, 0x80], &[0x80]],
    ];
    for keys in bad {
        let rows = Rows::of(&[good.clone(), good.clone(), row(keys), good.clone()]);
        let (done, found) = decoded(&rows, MANY);
        assert_eq!((done, found.len(), validated(&rows)), (2, 2, 2), "{keys:?}");
    }
}

#[test]
fn no_span_is_returned_without_slack() {
    let buffer = vec![0; SLACK + 4];
    assert!(Span::new(&buffer, 0, 4).is_some());
    assert!(Span::new(&buffer, 0, 5).is_none());
    assert!(Span::new(&buffer, 4, 3).is_none());
    assert!(Span::new(&buffer, usize::MAX, usize::MAX).is_none());
}

fn wanted(index: usize, key: &[u8], keep: Keep) -> Requested {
    Requested { key: key.to_vec(), key_type: Some(TEXT), keep, value_type: None, index }
}

#[test]
fn select_finds_the_values_of_wanted_keys() {
    let long = text(40);
    let almost = [&long[..39], b"!"].concat();
    let keys = KeySet::new(vec![
        wanted(0, b"k", Keep::Last),
        wanted(1, b"k", Keep::First),
        wanted(2, &long, Keep::Last),
        wanted(3, b"", Keep::Last),
        wanted(4, b"route", Keep::All),
    ])
    .unwrap();
    let value = |text: &[u8]| Some(text.to_vec());
    let rows = Rows::new(&[
        Some(written(&[
            (b"k".to_vec(), value(b"1")),
            (almost, value(b"x")),
            (b"k".to_vec(), None),
            (long, value(b"2")),
        ])),
        None,
        Some(written(&[(b"route".to_vec(), value(b"a")), (b"".to_vec(), value(&text(70))), (b"route".to_vec(), None)])),
    ]);
    let block = rows.block();
    let mut hits = SelectedValues::default();
    hits.clear(5);
    assert_eq!(select::<VarintLayout>(&block, MANY, &mut Scratch::default(), &keys, &mut hits), 3);
    let lane =
        |index| hits.lane(index)[..3].iter().map(|value| (value.is_missing(), value.bytes())).collect::<Vec<_>>();
    assert_eq!(lane(0), [(false, None), (true, None), (true, None)]);
    assert_eq!(lane(1), [(false, Some(&b"1"[..])), (true, None), (true, None)]);
    assert_eq!(lane(2), [(false, Some(&b"2"[..])), (true, None), (true, None)]);
    assert_eq!(lane(3), [(true, None), (true, None), (false, Some(&text(70)[..]))]);
    let every: Vec<_> = hits.every.iter().map(|hit| (hit.row, hit.index, hit.value.bytes())).collect();
    assert_eq!(every, [(2, 4, Some(&b"a"[..])), (2, 4, None)]);
}

fn offsets(offsets: &[i32]) -> Offsets<'_> {
    assert!(offsets[0] >= 0 && never_decrease(offsets));
    // SAFETY: as asserted above.
    unsafe { Offsets::new_unchecked(offsets, 0..offsets.len() - 1) }
}

/// Strings as offsets and bytes, followed by `COPY` bytes.
fn strings(parts: &[Vec<u8>]) -> (Vec<i32>, Vec<u8>) {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(part);
        offsets.push(bytes.len() as i32);
    }
    bytes.extend([0x2a; COPY]);
    (offsets, bytes)
}

const RULES: Rules =
    Rules { default_type: None, untyped: None, drops: false, refuses_nulls: false, max_bytes: i32::MAX as usize };

#[test]
fn headers_of_all_lengths_are_encoded() {
    let lengths = if cfg!(miri) { &LENGTHS[8..14] } else { &LENGTHS[..] };
    for key_len in lengths {
        for value_len in lengths.iter().map(|len| Some(*len)).chain([None]) {
            let headers = [(text(*key_len), value_len.map(text)), (text(2), Some(text(3))), (text(1), None)];
            let (key_ends, keys) = strings(&headers.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
            let (value_ends, values) =
                strings(&headers.iter().map(|(_, value)| value.clone().unwrap_or_default()).collect::<Vec<_>>());
            let valid =
                headers.iter().enumerate().fold(0, |bits, (at, (_, value))| bits | u8::from(value.is_some()) << at);
            let valid = [valid];
            let columns = Columns::new(
                None,
                Strings { offsets: offsets(&key_ends), bytes: &keys },
                None,
                Strings { offsets: offsets(&value_ends), bytes: &values },
                Some(Bits { bytes: &valid, offset: 0 }),
                0..3,
            );
            let mut lists = ListBlock::new(columns.unwrap());
            assert_eq!(lists.fill(&[0, 2, 2, 2, 3], 0b10, |place: usize| place), 4);
            let mut out = BinaryValues::default();
            assert_eq!(encode::<VarintLayout>(&lists, RULES, PROGRESS, &mut out), 4);
            let expected = [written(&headers[..2]), vec![], vec![], written(&headers[2..])];
            assert_eq!(runs(out), expected, "{key_len} {value_len:?}");
            let mut out = BinaryValues::default();
            let refused = Rules { refuses_nulls: true, ..RULES };
            assert_eq!(encode::<VarintLayout>(&lists, refused, PROGRESS, &mut out), 1);
        }
    }
}

#[test]
fn offsets_that_decrease_are_noticed() {
    for len in 0..100 {
        let rising: Vec<i64> = (0..len).map(|at| at / 3).collect();
        assert!(never_decrease(&rising));
        for at in 1..rising.len() {
            let mut falling = rising.clone();
            falling[at] = falling[at - 1] - 1;
            assert!(!never_decrease(&falling), "{len} {at}");
            falling[at] = i64::MIN;
            assert!(!never_decrease(&falling), "{len} {at}");
        }
        let mut text = vec![b'a'; rising.len()];
        assert!(is_ascii(&text));
        for at in 0..text.len() {
            text[at] = 0x80;
            assert!(!is_ascii(&text), "{len} {at}");
            text[at] = 0x7f;
        }
    }
}

#[test]
fn lists_outside_of_their_columns_are_left_to_the_slow_path() {
    let bytes = vec![0x2a; 100];
    let (good, bad) = ([0, 10, 20, 36], [0, 10, 20, 37]);
    for (keys, values) in [(good, bad), (bad, good)] {
        let of = |ends| Strings { offsets: offsets(ends), bytes: &bytes };
        let mut lists = ListBlock::new(Columns::new(None, of(&keys), None, of(&values), None, 0..3).unwrap());
        assert_eq!(lists.fill(&[0, 3], 0, |place: usize| place), 0);
        assert_eq!(lists.fill(&[0, 2], 0, |place: usize| place), 1);
    }
    // SAFETY: the range of the offsets is empty.
    let unknown = Strings { offsets: unsafe { Offsets::new_unchecked(&[5, -1], 1..1) }, bytes: &[] };
    let mut lists = ListBlock::new(Columns::new(None, unknown, None, unknown, None, 1..1).unwrap());
    assert_eq!((lists.fill(&[1, 1, 1], 0, |place: usize| place), lists.byte_len()), (2, 0));
    assert_eq!(lists.fill(&[0, 1], 0, |place: usize| place), 0);
    let strings = Strings { offsets: offsets(&good), bytes: &bytes };
    let bits = Bits { bytes: &[0xff], offset: 6 };
    assert!(Columns::new(None, strings, None, strings, Some(bits), 0..3).is_none());
    assert!(Columns::new(None, strings, None, strings, None, 0..4).is_none());
    let mut lists = ListBlock::new(Columns::new(None, strings, None, strings, None, 0..2).unwrap());
    assert_eq!(lists.fill(&[0, 3], 0, |place: usize| place), 0);
    assert_eq!(lists.fill(&[1, 0, 2], 0, |place: usize| place), 0);
    assert_eq!(lists.fill(&[0, usize::MAX], 0, |place: usize| place), 0);
    assert_eq!(lists.fill(&[0, 1, 3], 0, |place: usize| place), 1);
    assert_eq!(lists.fill(&[0, 1, 2], 0, |place: usize| place), 2);
}

struct Iggy;

impl Types for Iggy {
    const TYPED_KEYS: bool = true;
    const CODES: TypeCodes = TypeCodes::Iggy;
}

fn typed(headers: &[(ValueType, Vec<u8>, ValueType, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key_type, key, value_type, value) in headers {
        for (of, part) in [(key_type, key), (value_type, value)] {
            out.push(TypeCodes::Iggy.code(*of).unwrap());
            out.extend((part.len() as u32).to_le_bytes());
            out.extend(part);
        }
    }
    out
}

#[test]
fn typed_headers_are_decoded_and_written_back() {
    let (string, int32, other) = (TEXT, ValueType::Named(Scalar::Int32), ValueType::Unnamed(200));
    let headers: Vec<_> = [1, 63, 64, 65, 128, 255]
        .into_iter()
        .flat_map(|len| {
            [(string, text(len), other, text(256 - len)), (int32, vec![1, 0, 0, 0], int32, vec![2, 3, 0, 0])]
        })
        .collect();
    let row = typed(&headers);
    let rows = Rows::of(&[row.clone(), vec![], row[..14].to_vec(), row.clone()]);
    let (mut names, mut columns): ([Utf8<BinaryValues>; 2], [BinaryValues; 2]) = Default::default();
    let (mut has_value, mut ends) = (Validity::default(), vec![0]);
    let ([key_types, types], [keys, values]) = (&mut names, &mut columns);
    let mut lists = decode::ListColumns {
        keys: decode::KeyColumns::Typed(key_types, keys),
        types: Some(types),
        values,
        has_value: &mut has_value,
        ends: &mut ends,
    };
    assert_eq!(decode::<TypedLayout<Iggy>, _>(&rows.block(), MANY, PROGRESS, &mut lists), 2);
    assert_eq!(ends, [0, 12, 12]);
    let ([key_types, types], [keys, values]) = (names.map(|names| runs(names.into_inner())), columns.map(runs));
    assert_eq!(values[1], [0, 0, 3, 2], "the most significant byte comes first");
    let parts = [&key_types, &keys, &types, &values].map(|parts| strings(parts));
    let [key_types, keys, types, values] =
        parts.each_ref().map(|(ends, bytes)| Strings { offsets: offsets(ends), bytes });
    let names = |names| Some(Names { names, has_type: None });
    let mut lists = ListBlock::new(Columns::new(names(key_types), keys, names(types), values, None, 0..12).unwrap());
    assert_eq!(lists.fill(&[0, 12], 0, |place: usize| place), 1);
    let mut out = BinaryValues::default();
    // The slow path writes a type code without a name.
    assert_eq!(encode::<TypedLayout<Iggy>>(&lists, RULES, PROGRESS, &mut out), 0);
    let mut lists = ListBlock::new(Columns::new(names(key_types), keys, names(types), values, None, 0..12).unwrap());
    assert_eq!(lists.fill(&[1, 2], 0, |place: usize| place), 1);
    assert_eq!(encode::<TypedLayout<Iggy>>(&lists, RULES, PROGRESS, &mut out), 1);
    assert_eq!(runs(out), [typed(&headers[1..2])]);
}

#[test]
fn typed_headers_that_are_not_regular_are_left() {
    let (string, int32) = (TEXT, ValueType::Named(Scalar::Int32));
    let good = (int32, vec![1, 0, 0, 0], int32, vec![1, 2, 3, 4]);
    let bad = [
        (string, vec![], string, vec![1]),
        (string, vec![1], string, vec![1; 256]),
        (string, vec![1], int32, vec![1; 5]),
        (int32, vec![1], string, vec![1; 4]),
    ];
    for header in bad {
        let rows = Rows::of(&[typed(std::slice::from_ref(&good)), typed(&[good.clone(), header])]);
        assert_eq!(validate::<TypedLayout<Iggy>>(&rows.block(), MANY, &mut Scratch::default()), 1);
    }
}

#[test]
fn headers_are_written_in_another_layout() {
    let headers = [(text(3), Some(text(70))), (text(70), None), (text(0), Some(vec![]))];
    let rows = Rows::of(&[written(&headers), vec![], written(&headers[1..]), vec![1], written(&headers)]);
    let binary = Rules { default_type: Some(ValueType::Named(Scalar::Binary)), ..RULES };
    let mut scratch = Scratch::default();
    let mut out = BinaryValues::default();
    assert_eq!(convert::<VarintLayout, Kip82Layout>(&rows.block(), MANY, binary, &mut scratch, PROGRESS, &mut out), 3);
    let header = |(key, value): &Header| {
        let value = value.as_ref().map(|value| [&[9][..], value].concat()).unwrap_or_default();
        [&(key.len() as u32).to_be_bytes()[..], key, &(value.len() as u32).to_be_bytes(), &value].concat()
    };
    let expected =
        [&headers[..], &[], &headers[1..]].map(|headers| headers.iter().flat_map(header).collect::<Vec<_>>());
    // Iggy supports neither null values nor empty keys and values.
    assert_eq!(
        convert::<VarintLayout, TypedLayout<Iggy>>(&rows.block(), MANY, binary, &mut scratch, PROGRESS, &mut out),
        0
    );
    assert_eq!(convert::<VarintLayout, Kip82Layout>(&rows.block(), MANY, RULES, &mut scratch, PROGRESS, &mut out), 0);
    assert_eq!(runs(out), expected);
}

/// A rejected header ends its row: it is not passed again as an irregular header.
#[test]
fn a_rejected_header_ends_its_row() {
    let rows = Rows::of(&[written(&[(text(3000), None)])]);
    let binary = Rules { default_type: Some(ValueType::Named(Scalar::Binary)), ..RULES };
    let mut out = BinaryValues::default();
    let done = convert::<VarintLayout, TypedLayout<Iggy>>(
        &rows.block(),
        MANY,
        binary,
        &mut Scratch::default(),
        PROGRESS,
        &mut out,
    );
    assert_eq!((done, out.count()), (0, 0));
}

#[test]
fn headers_lose_their_types() {
    let (int32, bool, other) =
        (ValueType::Named(Scalar::Int32), ValueType::Named(Scalar::Bool), ValueType::Unnamed(200));
    let header = |of, value: &[u8]| (TEXT, text(70), of, value.to_vec());
    let good = [header(int32, &[1, 2, 3, 4]), header(TEXT, &text(200)), header(bool, &[1]), header(other, &[0xff])];
    let untyped = |number: &[u8]| {
        let values = [number, &text(200), &[1], &[0xff]];
        written(&values.map(|value| (text(70), Some(value.to_vec()))))
    };
    let convert = |rows: &[Vec<u8>], untyped| {
        let (rows, mut out) = (Rows::of(rows), BinaryValues::default());
        let rules = Rules { untyped, ..RULES };
        let done = convert::<TypedLayout<Iggy>, VarintLayout>(
            &rows.block(),
            MANY,
            rules,
            &mut Scratch::default(),
            PROGRESS,
            &mut out,
        );
        let made = runs(out);
        assert_eq!(made.len(), done);
        made
    };
    let rows = [typed(&good), vec![], typed(&good)];
    let expected = |number: &[u8]| [untyped(number), vec![], untyped(number)];
    assert_eq!(convert(&rows, Some(ByteOrder::Big)), expected(&[4, 3, 2, 1]));
    assert_eq!(convert(&rows, Some(ByteOrder::Little)), expected(&[1, 2, 3, 4]));
    assert!(convert(&rows, None).is_empty());
    let bad = [
        typed(&[header(bool, &[2])]),
        typed(&[header(TEXT, &[0xff])]),
        typed(&[(TEXT, vec![0xff], int32, vec![0; 4])]),
        typed(&[(int32, vec![0; 4], int32, vec![0; 4])]),
        typed(&vec![header(bool, &[1]); 64]),
    ];
    for row in bad {
        assert_eq!(convert(&[typed(&good), row], Some(ByteOrder::Big)), [untyped(&[4, 3, 2, 1])]);
    }
}

/// The memory that is reserved depends on the byte count of a block, which is at least the number of bytes of its rows.
#[test]
fn a_row_counts_with_all_of_its_bytes() {
    let headers = [(text(100), Some(text(4000)))];
    let rows = Rows::of(&[written(&headers), written(&headers)]);
    let mut block = RowBlock::default();
    for place in rows.places.iter().flatten() {
        block.push(Span::new(&rows.buffer, place.0, place.1));
    }
    assert_eq!(block.byte_len(), 2 * written(&headers).len());
    let read = |_: &RowBlock<'_>, lists: &mut decode::ListColumns<'_>| {
        decode::<VarintLayout, _>(&block, MANY, PROGRESS, lists)
    };
    assert_eq!(decoded_by(&rows, read), (2, vec![headers.to_vec(), headers.to_vec()]));
    let mut out = BinaryValues::default();
    assert_eq!(
        convert::<VarintLayout, VarintLayout>(&block, MANY, RULES, &mut Scratch::default(), PROGRESS, &mut out),
        2
    );
    assert_eq!(runs(out), [written(&headers), written(&headers)]);
}

#[test]
fn headers_of_rows_with_set_bits_are_kept() {
    let rows = Rows::of(&(0..ROWS).map(|len| vec![0; len]).collect::<Vec<_>>());
    for selected in [0, 1, 1 << (ROWS - 1), 0b1010, 0xf0f0_1234_5678_9abc, u64::MAX] {
        let mut block = rows.block();
        block.retain(selected);
        let kept = block.rows().iter().map(|row| row.unwrap().len()).collect::<Vec<_>>();
        assert_eq!(kept, (0..ROWS).filter(|row| selected >> row & 1 == 1).collect::<Vec<_>>());
    }
}

#[test]
fn sizes_of_memory_do_not_wrap() {
    let mut block = RowBlock::default();
    block.count_bytes(usize::MAX / 2);
    block.count_bytes(usize::MAX);
    block.push(None);
    assert_eq!(block.byte_len(), usize::MAX);
    assert!(!block.has_room(64, usize::MAX));
    assert_eq!(max_converted_len(VarintLayout::LAYOUT, Kip82Layout::LAYOUT, &block), usize::MAX);
    assert!(decode::max_bytes(<TypedLayout<Iggy>>::LAYOUT, usize::MAX) >= usize::MAX / 2);
    assert_eq!(decode::max_bytes(VarintLayout::LAYOUT, usize::MAX), usize::MAX);
}

#[test]
#[should_panic = "ranges overlap"]
fn ranges_that_overlap_are_refused() {
    let mut texts = Utf8::<BinaryValues>::default();
    ["a\u{e9}", "\u{e9}b", "\u{e9}"].iter().for_each(|text| texts.push(text));
    texts.retain(0, &[1..3, 0..2]);
}

#[test]
#[should_panic = "bytes of other values were removed"]
fn bytes_of_other_runs_cannot_be_removed() {
    let mut out = BinaryValues::default();
    out.push(b"abc");
    let _ = out.push_written(|bytes| {
        bytes.clear();
        Ok::<_, ()>(())
    });
}

#[test]
fn a_run_that_could_not_be_written_leaves_nothing() {
    let mut out = BinaryValues::default();
    out.push(b"abc");
    let failed = out.push_written(|bytes| {
        bytes.extend(b"half");
        Err::<(), _>("no more")
    });
    assert_eq!(failed, Err("no more"));
    let written = out.push_written(|bytes| {
        bytes.extend(b"de");
        Ok::<_, ()>(())
    });
    assert_eq!(written, Ok(()));
    assert_eq!(runs(out), [&b"abc"[..], b"de"]);
}

#[test]
fn a_panic_leaves_a_column_as_it_was() {
    let mut texts = Utf8::<BinaryValues>::default();
    texts.push("before");
    let half_written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut writer = texts.0.writer(1, 8, PROGRESS);
        // SAFETY: the writer was made for one run of eight bytes.
        unsafe { writer.push_padded(([0xff; 8], 8)) };
        panic!("before the bytes were checked");
    }));
    assert!(half_written.is_err());
    assert_eq!(runs(texts.into_inner()), [b"before"]);
}

#[test]
fn rows_are_dropped_if_offset_panics() {
    let bytes = vec![0x2a; COPY + 2];
    let strings = Strings { offsets: offsets(&[0, 1, 2]), bytes: &bytes };
    let mut lists = ListBlock::new(Columns::new(None, strings, None, strings, None, 0..2).unwrap());
    assert_eq!(lists.fill(&[0, 1, 2], 0, |place: usize| place), 2);
    let mut calls = 0;
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lists.fill(&[0, usize::MAX, 2], 0, |place: usize| if place == 2 { panic!("no offset") } else { place })
    }));
    calls += usize::from(failed.is_err());
    assert_eq!((calls, lists.row_count()), (1, 0));
}

/// The other tests run the AVX2 kernels on processors with AVX2.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_for_the_baseline_pass_the_same_tests() {
    assert!(has_avx2() || !is_x86_feature_detected!("avx2"));
    ONLY_BASELINE.set(true);
    assert!(!has_avx2());
    headers_of_all_lengths_are_decoded();
    truncated_or_long_row_is_left_and_earlier_ones_stay();
    lengths_of_any_spelling_are_read_and_lost_bits_are_not();
    a_row_with_too_many_headers_is_left();
    non_utf8_key_is_found_at_any_split();
    select_finds_the_values_of_wanted_keys();
    headers_of_all_lengths_are_encoded();
    typed_headers_are_decoded_and_written_back();
    typed_headers_that_are_not_regular_are_left();
    headers_are_written_in_another_layout();
    a_rejected_header_ends_its_row();
    headers_lose_their_types();
    random_rows_are_read_as_by_a_naive_loop();
    ONLY_BASELINE.set(false);
}

/// Bytes that are often a nearly valid row.
fn row() -> impl Strategy<Value = Vec<u8>> {
    let part = || proptest::collection::vec(prop_oneof![9 => b'a'..=b'z', 1 => any::<u8>()], 0..80);
    let headers = proptest::collection::vec((part(), proptest::option::of(part())), 0..6);
    let damage = proptest::option::of((any::<proptest::sample::Index>(), any::<u8>()));
    let ascii = |(key, value): (Vec<u8>, _)| (key.iter().map(|byte| byte & 0x7f).collect(), value);
    (headers, damage, any::<bool>()).prop_map(move |(headers, damage, is_ascii)| {
        let headers: Vec<Header> = if is_ascii { headers.into_iter().map(ascii).collect() } else { headers };
        let mut row = written(&headers);
        if let Some((at, byte)) = damage {
            let at = at.index(row.len());
            row[at] = byte;
        }
        row
    })
}

/// Decodes a row one header after the other.
fn naive(row: &[u8]) -> Option<Vec<Header>> {
    fn length(row: &[u8], at: &mut usize) -> Option<i32> {
        let mut bits = 0u64;
        for index in 0..5 {
            let byte = *row.get(*at)?;
            *at += 1;
            bits |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                let bits = u32::try_from(bits).ok()?;
                return Some((bits >> 1) as i32 ^ -((bits & 1) as i32));
            }
        }
        None
    }
    fn take<'r>(row: &'r [u8], at: &mut usize, len: i32) -> Option<&'r [u8]> {
        let part = row.get(*at..at.checked_add(usize::try_from(len).ok()?)?)?;
        *at += part.len();
        Some(part)
    }
    if row.is_empty() {
        return Some(vec![]);
    }
    let mut at = 0;
    let count = usize::try_from(length(row, &mut at)?).ok()?;
    let mut headers = Vec::new();
    for _ in 0..count {
        let len = length(row, &mut at)?;
        let key = take(row, &mut at, len)?.to_vec();
        std::str::from_utf8(&key).ok()?;
        let value = match length(row, &mut at)? {
            -1 => None,
            len => Some(take(row, &mut at, len)?.to_vec()),
        };
        headers.push((key, value));
    }
    (at == row.len()).then_some(headers)
}

proptest! {
    #[test]
    fn random_rows_are_read_as_by_a_naive_loop(rows in proptest::collection::vec(row(), 1..8)) {
        let expected: Vec<_> = rows.iter().map_while(|row| naive(row)).collect();
        let rows = Rows::of(&rows);
        let (done, found) = decoded(&rows, MANY);
        // Kernels leave a count of more than two bytes to the slow path; no row has such a count.
        prop_assert_eq!((done, &found), (expected.len(), &expected));
        prop_assert_eq!(validated(&rows), done);
        let mut out = BinaryValues::default();
        let block = rows.block();
        prop_assert_eq!(convert::<VarintLayout, VarintLayout>(&block, MANY, RULES, &mut Scratch::default(), PROGRESS, &mut out), done);
        let plain = expected.iter().map(|headers| if headers.is_empty() { vec![] } else { written(headers) });
        prop_assert_eq!(runs(out), plain.collect::<Vec<_>>());
        let keys = KeySet::new(vec![wanted(0, b"a", Keep::Last), wanted(1, b"b", Keep::All)]).unwrap();
        let mut hits = SelectedValues::default();
        hits.clear(2);
        prop_assert_eq!(select::<VarintLayout>(&rows.block(), MANY, &mut Scratch::default(), &keys, &mut hits), done);
        let mut hits_of_decode = SelectedValues::default();
        hits_of_decode.clear(2);
        let both = decoded_by(&rows, |block, lists| {
            decode_and_select::<VarintLayout, _>(block, MANY, PROGRESS, lists, &keys, &mut hits_of_decode)
        });
        prop_assert_eq!(both, (done, found));
        for (place, headers) in expected.iter().enumerate() {
            let last = headers.iter().rfind(|(key, _)| key == b"a");
            let every: Vec<_> = headers.iter().filter(|(key, _)| key == b"b").map(|(_, value)| value.as_deref()).collect();
            for hits in [&hits, &hits_of_decode] {
                let found = hits.lane(0)[place];
                prop_assert_eq!((found.is_missing(), found.bytes()), (last.is_none(), last.and_then(|(_, value)| value.as_deref())));
                let hits: Vec<_> = hits.every.iter().filter(|hit| hit.row == place).map(|hit| hit.value.bytes()).collect();
                prop_assert_eq!(&hits, &every);
            }
        }
    }

    #[test]
    fn runs_in_some_ranges_are_kept(texts in proptest::collection::vec(".{0,9}", 1..40), from in 0..40usize, mask: u64) {
        let from = from.min(texts.len());
        let mut out = BinaryValues::default();
        texts.iter().for_each(|text| out.push(text.as_bytes()));
        let kept: Vec<_> = (from..texts.len()).filter(|place| mask >> place & 1 == 1).collect();
        out.retain(from, &kept.iter().map(|place| *place..place + 1).collect::<Vec<_>>());
        let expected = (0..from).chain(kept).map(|place| texts[place].clone().into_bytes());
        prop_assert_eq!(runs(out), expected.collect::<Vec<_>>());
    }

    #[test]
    fn validity_matches_list_of_booleans(steps in proptest::collection::vec((0..6u8, 0..200usize, any::<u64>()), 0..40)) {
        let (mut validity, mut expected) = (Validity::default(), Vec::new());
        for (step, count, word) in steps {
            match step {
                0 => {
                    validity.push(word & 1 == 1);
                    expected.push(word & 1 == 1);
                }
                1 => {
                    validity.push_all(count);
                    expected.extend(vec![true; count]);
                }
                2 => {
                    validity.truncate(count);
                    expected.truncate(count);
                }
                3 => {
                    validity.push_word(word, count % 65);
                    expected.extend((0..count % 65).map(|bit| word >> bit & 1 == 1));
                }
                4 => {
                    let from = count.min(expected.len());
                    let kept: Vec<_> = (from..expected.len()).step_by(70).map(|at| at..expected.len().min(at + count % 71)).collect();
                    validity.retain(from, &kept);
                    let tail: Vec<_> = kept.into_iter().flat_map(|places| expected[places].to_vec()).collect();
                    expected.truncate(from);
                    expected.extend(tail);
                }
                _ => {
                    // Clears the bit of a later value and then removes that value, as a kernel does.
                    validity.reserve(count + 1);
                    validity.clear(expected.len() + count);
                    validity.set_count(expected.len());
                    validity.truncate(expected.len());
                }
            }
            prop_assert_eq!(validity.count(), expected.len());
        }
        prop_assert_eq!(bits(validity), expected);
    }
}

#[test]
fn unused_memory_is_given_back() {
    let mut numbers = Vec::<u32>::with_capacity(1000);
    numbers.extend(0..400);
    let numbers = super::buffer::shrunk(numbers);
    assert!(numbers.capacity() < 500 && numbers.iter().copied().eq(0..400));
}
