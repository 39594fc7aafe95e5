//! Laws that every format keeps, and one test for each input that a decoder rejects.

use letterhead::arrow::run::OnError;
use letterhead::arrow::{Apply, Decode, Encode, Input};
use letterhead::error::{Code, Error, Fault};
use letterhead::format::{Format, Visitor};
use letterhead::mode::{Exact, Fast, Labelled, OnLoss};
use letterhead::op::inspect::Inspect;
use letterhead::op::values::DecodeMessage;
use letterhead::walk::{Discard, Envelope, ReadOptions, walk_cell};
use proptest::prelude::*;

use arrow_array::{Array, BinaryArray};

fn first_fault(cell: &[u8], format: &str) -> Option<Fault> {
    let options = ReadOptions::default();
    match Format::named(format).unwrap().visit(DecodeMessage { cell, options }) {
        Ok(_) => None,
        Err(Error::Headers(_, located)) => Some(located.fault),
        Err(other) => panic!("{other}"),
    }
}

fn code_and_place(cell: &[u8], format: &str) -> (Code, Option<usize>, Option<usize>) {
    let fault = first_fault(cell, format).expect("rejected");
    (fault.code, fault.byte, fault.header)
}

/// Two headers, the second without a value.
const BLOCK: &[u8] = b"\x04\x02a\x04xy\x04bc\x01";

#[test]
fn a_whole_block_is_read() {
    assert_eq!(first_fault(BLOCK, "kafka"), None);
}

#[test]
fn an_empty_cell_is_no_headers_and_no_envelope() {
    assert_eq!(first_fault(b"", "kafka"), None);
    assert_eq!(first_fault(b"\0", "kafka"), None);
    assert_eq!(code_and_place(b"", "streams"), (Code::Truncated, Some(0), None));
    assert_eq!(code_and_place(b"", "streams-timestamped"), (Code::Truncated, Some(0), None));
}

#[test]
fn a_block_cut_anywhere_is_truncated_or_too_short_for_its_count() {
    for len in 1..BLOCK.len() {
        let code = first_fault(&BLOCK[..len], "kafka").expect("rejected").code;
        let short = (BLOCK.len() - 1) / 2;
        assert!(code == Code::Truncated || code == Code::CountTooLarge && len <= short, "{len}: {code:?}");
    }
}

#[test]
fn an_envelope_cut_inside_its_frame_or_headers_is_truncated() {
    let whole = [&[BLOCK.len() as u8 * 2][..], BLOCK, &[0; 8], b"payload"].concat();
    assert_eq!(first_fault(&whole, "streams-timestamped"), None);
    for len in 0..1 + BLOCK.len() + 8 {
        assert_eq!(first_fault(&whole[..len], "streams-timestamped").expect("rejected").code, Code::Truncated, "{len}");
    }
}

#[test]
fn negative_key_length_is_rejected() {
    assert_eq!(code_and_place(b"\x02\x01\x00\x00", "kafka"), (Code::NegativeLength, Some(1), Some(0)));
}

#[test]
fn negative_value_length_other_than_null_is_rejected() {
    assert_eq!(code_and_place(b"\x02\x02a\x03", "kafka"), (Code::NegativeLength, Some(3), Some(0)));
}

#[test]
fn a_key_longer_than_the_bytes_is_rejected() {
    assert_eq!(code_and_place(b"\x02\x7ea\x01", "kafka"), (Code::Truncated, Some(2), Some(0)));
}

#[test]
fn a_value_longer_than_the_bytes_is_rejected() {
    assert_eq!(code_and_place(b"\x02\x02a\x7ex", "kafka"), (Code::Truncated, Some(4), Some(0)));
}

#[test]
fn a_negative_count_is_rejected() {
    assert_eq!(code_and_place(b"\x01\x02a\x01", "kafka"), (Code::NegativeCount, Some(0), None));
}

#[test]
fn a_count_that_the_bytes_cannot_hold_is_rejected_before_anything_is_allocated() {
    let huge = b"\xfe\xff\xff\xff\x0f\x02a\x01";
    assert_eq!(code_and_place(huge, "kafka"), (Code::CountTooLarge, Some(0), None));
}

#[test]
fn trailing_bytes_are_rejected() {
    let trailing = [BLOCK, b"!"].concat();
    assert_eq!(code_and_place(&trailing, "kafka"), (Code::TrailingBytes, Some(BLOCK.len()), None));
    assert_eq!(code_and_place(b"\0\0", "kafka"), (Code::TrailingBytes, Some(1), None));
}

#[test]
fn a_key_that_is_not_utf8_is_rejected_and_leaves_its_neighbours_readable() {
    let cell = b"\x04\x06ab\xff\x02x\x02c\x01";
    assert_eq!(code_and_place(cell, "kafka"), (Code::KeyNotUtf8, Some(4), Some(0)));
    let found = Format::Kafka.visit(Inspect { cell, options: ReadOptions::default() });
    assert_eq!(found.faults.len(), 1);
    assert!(found.labels.iter().any(|label| label.header == Some(1) && label.text == "\"c\""));
}

#[test]
fn a_varint_past_its_fifth_byte_is_rejected() {
    assert_eq!(code_and_place(b"\x80\x80\x80\x80\x80\x00", "kafka"), (Code::VarintTooLong, Some(0), None));
}

#[test]
fn bits_that_a_varint_cannot_hold_are_rejected() {
    assert_eq!(code_and_place(b"\x80\x80\x80\x80\x10", "kafka"), (Code::VarintLostBits, Some(0), None));
}

#[test]
fn a_longer_spelling_of_a_number_is_read() {
    assert_eq!(first_fault(b"\x82\x00\x02a\x01", "kafka"), None);
}

#[test]
fn a_size_past_the_end_or_below_zero_is_rejected() {
    assert_eq!(code_and_place(b"\x04\x00", "streams"), (Code::Truncated, Some(1), None));
    assert_eq!(code_and_place(b"\x01\x00", "streams"), (Code::NegativeLength, Some(0), None));
}

#[test]
fn a_cut_timestamp_leaves_the_headers_readable() {
    let cell = [&[BLOCK.len() as u8 * 2][..], BLOCK, &[0; 7]].concat();
    assert_eq!(code_and_place(&cell, "streams-timestamped"), (Code::Truncated, Some(1 + BLOCK.len()), None));
    let cells = BinaryArray::from_vec(vec![&cell[..]]);
    let verb = Decode { on_error: OnError::Column, ..Decode::default() };
    let made = Format::StreamsTimestamped.visit(Apply(&verb, Input::new(&cells))).unwrap().column;
    let made = made.as_any().downcast_ref::<arrow_array::StructArray>().unwrap();
    assert!(made.column(0).is_valid(0) && made.column(1).is_null(0) && made.column(2).is_null(0));
}

/// Whether each of the three modes accepts a cell.
struct Accepts<'a>(&'a [u8], ReadOptions);

impl Visitor for Accepts<'_> {
    type Out = [bool; 3];

    fn visit<E: Envelope>(self) -> [bool; 3] {
        let Accepts(cell, options) = self;
        let fast = walk_cell::<E, _, _>(cell, options, &mut Fast { on_loss: OnLoss::Raise }, &mut Discard).is_ok();
        let (mut exact, mut labelled) = (Exact::default(), Labelled::default());
        let _ = walk_cell::<E, _, _>(cell, options, &mut exact, &mut Discard);
        let _ = walk_cell::<E, _, _>(cell, options, &mut labelled, &mut Discard);
        [fast, exact.faults.is_empty(), labelled.exact.faults.is_empty()]
    }
}

/// Bytes that are headers, or nearly.
fn near_headers() -> impl Strategy<Value = Vec<u8>> {
    let header = (prop::collection::vec(any::<u8>(), 0..6), prop::option::of(prop::collection::vec(any::<u8>(), 0..9)));
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (prop::collection::vec(header, 0..5), any::<bool>(), edits, 0usize..4).prop_map(|(headers, framed, edits, cut)| {
        let mut block = vec![headers.len() as u8 * 2];
        for (key, value) in &headers {
            block.push(key.len() as u8 * 2);
            block.extend(key.iter().map(|byte| byte & 0x7f));
            block.push(value.as_ref().map_or(1, |value| value.len() as u8 * 2));
            block.extend(value.iter().flatten());
        }
        let mut cell = block;
        if framed {
            cell.insert(0, cell.len() as u8 * 2);
            cell.extend([0; 11]);
        }
        for (place, byte) in edits {
            let place = place.index(cell.len());
            cell[place] = byte;
        }
        cell.truncate(cell.len().saturating_sub(cut));
        cell
    })
}

proptest! {
    #[test]
    fn fast_exact_and_labelled_accept_the_same_bytes(cell in near_headers(), lenient: bool) {
        for format in Format::ALL {
            let [fast, exact, labelled] = format.visit(Accepts(&cell, ReadOptions { lenient }));
            prop_assert_eq!(fast, exact);
            prop_assert_eq!(exact, labelled);
        }
    }

    #[test]
    fn what_strict_reads_lenient_reads_too(cell in near_headers()) {
        for format in Format::ALL {
            let [strict, ..] = format.visit(Accepts(&cell, ReadOptions::default()));
            let [lenient, ..] = format.visit(Accepts(&cell, ReadOptions { lenient: true }));
            prop_assert!(lenient || !strict);
        }
    }

    #[test]
    fn what_is_read_is_written_and_read_again(cells in prop::collection::vec(near_headers(), 0..6)) {
        for format in Format::ALL {
            let whole = |cell: &&[u8]| format.visit(Accepts(cell, ReadOptions::default()))[0];
            let column = BinaryArray::from_vec(cells.iter().map(Vec::as_slice).filter(whole).collect());
            let read = format.visit(Apply(&Decode::default(), Input::new(&column))).unwrap().column;
            let written = format.visit(Apply(&Encode::default(), Input::new(&read))).unwrap().column;
            let again = format.visit(Apply(&Decode::default(), Input::new(&written))).unwrap().column;
            prop_assert_eq!(&read, &again);
        }
    }

    #[test]
    fn a_column_names_the_same_first_fault_as_its_cells(cells in prop::collection::vec(near_headers(), 1..6)) {
        for format in Format::ALL {
            let column = BinaryArray::from_vec(cells.iter().map(Vec::as_slice).collect());
            let first = cells.iter().enumerate().find_map(|(row, cell)| {
                first_fault(cell, format.info().name).map(|fault| (row, fault))
            });
            let raised = match format.visit(Apply(&Decode::default(), Input::new(&column))) {
                Ok(_) => None,
                Err(Error::Headers(_, located)) => Some((located.row.unwrap(), located.fault)),
                Err(other) => panic!("{other}"),
            };
            prop_assert_eq!(first, raised);
        }
    }
}
