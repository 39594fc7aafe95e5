//! A new format is one file and one table row: this one gets every operation without a change anywhere else.

mod tiny {
    //! `tiny`: `u8 key_len, key UTF-8, u8 value_len, value`, repeated to the end.
    use letterhead::header::{Header, KeyForm};
    use letterhead::mode::{Mode, Stop};
    use letterhead::walk::{Block, ReadOptions, Sink};
    use letterhead::{cursor::Cursor, error::Code, value::ByteOrder};

    pub struct Tiny;
    impl Block for Tiny {
        const NAME: &'static str = "tiny";
        const SOURCE: &'static str = "this test";
        const LAYOUT: &'static str = "u8 key_len, key UTF-8, u8 value_len, value";
        const KEYS: KeyForm = KeyForm::Text;
        const KINDS: bool = false;
        const ORDER: ByteOrder = ByteOrder::Big;
        fn walk<'a, M: Mode, S: Sink<'a>>(
            mut cursor: Cursor<'a>,
            _options: ReadOptions,
            mode: &mut M,
            sink: &mut S,
        ) -> Result<(), Stop> {
            let mut index = 0;
            while cursor.remaining() > 0 {
                mode.enter_header(Some(index));
                let mut parts = [("key", 0, &[][..]), ("value", 0, &[][..])];
                for (field, at, bytes) in &mut parts {
                    let len = cursor.take(1, "length", mode)?[0].into();
                    *at = cursor.at();
                    *bytes = cursor.take(len, field, mode)?;
                    mode.label(*at, cursor.at(), field, String::new);
                }
                let [(_, key_at, key), (_, at, value)] = parts;
                match std::str::from_utf8(key) {
                    Ok(k) => sink
                        .header(Header { index, key: k.into(), kind: None, value: Some(value), at: Some(at) }, mode)?,
                    Err(_) => mode.soft(Code::KeyNotUtf8, Some(key_at), || "the key is not UTF-8".into())?,
                }
                index += 1;
            }
            Ok(())
        }

        fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize, Stop> {
            let lens = || headers.iter().flat_map(|h| [h.key.to_string().len(), h.value.map_or(0, <[u8]>::len)]);
            match lens().find(|len| *len > 255) {
                Some(len) => Err(mode.hard(Code::TooLong, None, || format!("{len} bytes pass 255"))),
                None => Ok(lens().map(|len| 1 + len).sum()),
            }
        }

        fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
            for header in headers {
                for part in [header.key.to_string().as_bytes(), header.value.unwrap_or_default()] {
                    out.push(part.len() as u8);
                    out.extend_from_slice(part);
                }
            }
        }
    }
}

use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_array::{Array, BinaryArray};
use letterhead::arrow::run::OnError;
use letterhead::arrow::select::{Repeat, Want};
use letterhead::arrow::{Decode, Encode, Input, Select, Validate, Verb};
use letterhead::block::Bare;
use letterhead::format::Visitor;
use letterhead::op::inspect::Inspect;
use letterhead::op::values::DecodeMessage;
use letterhead::value::Type;
use letterhead::walk::ReadOptions;

/// The row of the table: the type that the dispatch hands out.
type Row = Bare<tiny::Tiny>;

const GOOD: &[u8] = b"\x01a\x02\x00\x07\x01b\x01x\x01a\x02\x00\x09";
const CUT: &[u8] = b"\x01a\x02\x00\x07\x01b\x05x";

#[test]
fn it_decodes_and_encodes_columns() {
    let cells = BinaryArray::from_opt_vec(vec![Some(GOOD), None, Some(b"")]);
    let lists = Decode::default().apply::<Row>(Input::new(&cells)).unwrap().column;
    assert_eq!(lists.as_list::<i32>().value_length(0), 3);
    assert!(lists.is_null(1));
    let back = Encode::default().apply::<Row>(Input::new(&lists)).unwrap().column;
    assert_eq!(back.as_binary::<i32>().value(0), GOOD);
}

#[test]
fn it_selects() {
    let cells = BinaryArray::from_vec(vec![GOOD]);
    let want = Want {
        output: "number".into(),
        key: "a".into(),
        of: Type::parse("int16").unwrap(),
        repeat: Repeat::Last,
        required: true,
    };
    let made = Select { wants: vec![want], ..Select::default() }.apply::<Row>(Input::new(&cells)).unwrap().column;
    assert_eq!(made.as_struct().column(0).as_primitive::<Int16Type>().value(0), 9);
}

#[test]
fn it_validates_and_says_where() {
    let cells = BinaryArray::from_vec(vec![GOOD, CUT]);
    let faults = Validate::default().apply::<Row>(Input::new(&cells)).unwrap().column;
    assert!(faults.is_null(0));
    assert_eq!(faults.as_list::<i32>().value_length(1), 1);
    let error = Decode::default().apply::<Row>(Input::new(&cells)).err().unwrap();
    assert_eq!(error.to_string(), "tiny: header 1: value takes 5 bytes and 1 is left (byte 8, row 1)");
    let column = Decode { on_error: OnError::Column, ..Decode::default() };
    assert_eq!(column.apply::<Row>(Input::new(&cells)).unwrap().column.as_struct().num_columns(), 2);
}

#[test]
fn it_is_inspected_and_read_as_one_message() {
    let found = Inspect { cell: CUT, options: ReadOptions::default() }.visit::<Row>();
    assert_eq!(found.faults[0].byte, Some(8));
    assert_eq!(found.labels.last().unwrap().field, "not read");
    let message = DecodeMessage { cell: GOOD, options: ReadOptions::default() }.visit::<Row>().unwrap();
    assert_eq!(message.headers.unwrap().len(), 3);
}
