//! A new format is one file and one row of a table: `tiny` gets every operation without another change to the core.

mod tiny {
    //! `tiny`: `u8 key_len, key UTF-8, u8 value_len, value`, repeated to the end.
    use letterhead::format_info::Constraints;
    use letterhead::header::{Header, Key, KeyForm, Text};
    use letterhead::internals::NoKernels;
    use letterhead::log::{Log, Stop};
    use letterhead::options::ReadOptions;
    use letterhead::sink::Sink;
    use letterhead::traits::HeadersFormat;
    use letterhead::value_type::TypeCodes;
    use letterhead::{cursor::Cursor, error::Code, value::ByteOrder, value::Checks};

    pub struct Tiny;
    impl HeadersFormat for Tiny {
        const NAME: &'static str = "tiny";
        const SOURCE: &'static str = "this test";
        const LAYOUT: &'static str = "u8 key_len, key UTF-8, u8 value_len, value";
        const KEYS: KeyForm = KeyForm::Text;
        const TYPES: TypeCodes = TypeCodes::None;
        const ORDER: ByteOrder = ByteOrder::Big;
        const CONSTRAINTS: Constraints = Constraints { nulls: false, part_len: (0, 255), checks: Checks::Nothing };
        type Layout = NoKernels;
        fn parse<'a, R: Log, S: Sink<'a>>(
            mut cursor: Cursor<'a>,
            _options: ReadOptions,
            log: &mut R,
            sink: &mut S,
        ) -> Result<(), Stop> {
            let mut index = 0;
            while cursor.remaining() > 0 {
                log.enter_header(Some(index));
                let mut parts = [("key", 0, &[][..]), ("value", 0, &[][..])];
                for (field, start, bytes) in &mut parts {
                    let len = cursor.take(1, "length", log)?[0].into();
                    *start = cursor.offset();
                    *bytes = cursor.take(len, field, log)?;
                    log.label(*start, cursor.offset(), field, String::new);
                }
                let [(_, key_at, key), (_, start, value)] = parts;
                match Text::new(key).map(Key::Text) {
                    Ok(key) => sink.header(
                        Header { index, key, value_type: None, value: Some(value), value_offset: Some(start) },
                        log,
                    )?,
                    Err(_) => log.error(Code::KeyNotUtf8, Some(key_at), || "the key is not UTF-8".into())?,
                }
                index += 1;
            }
            Ok(())
        }

        fn encoded_len<R: Log>(headers: &[Header<'_>], _log: &mut R) -> Result<usize, Stop> {
            Ok(headers.iter().map(|h| 2 + h.key.to_string().len() + h.value.map_or(0, <[u8]>::len)).sum())
        }

        fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
            for part in [header.key.to_string().as_bytes(), header.value.unwrap_or_default()] {
                out.push(part.len() as u8);
                out.extend_from_slice(part);
            }
        }
    }
}

use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_array::{Array, BinaryArray};
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Convert, Decode, Encode, Input, Operation, Select, Validate};
use letterhead::error::Error;
use letterhead::format::{Format, Visitor};
use letterhead::formats::headers::Bare;
use letterhead::header::{Header, Key, RequestedKey};
use letterhead::log::OnError;
use letterhead::op::inspect::Inspect;
use letterhead::op::values::ParseMessage;
use letterhead::op::write::EncodeMessage;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::sink::GatheredMessage;
use letterhead::traits::MessageFormat as _;
use letterhead::types::Type;

/// Row of the table: the type that the dispatch passes to an operation.
type Row = Bare<tiny::Tiny>;

const GOOD: &[u8] = b"\x01a\x02\x00\x07\x01b\x01x\x01a\x02\x00\x09";
const CUT: &[u8] = b"\x01a\x02\x00\x07\x01b\x05x";

#[test]
fn added_format_decodes_and_encodes_columns() {
    let serialized_rows = BinaryArray::from_opt_vec(vec![Some(GOOD), None, Some(b"")]);
    let lists = Decode::default().apply::<Row>(Input::new(&serialized_rows)).unwrap().column;
    assert_eq!(lists.as_list::<i32>().value_length(0), 3);
    assert!(lists.is_null(1));
    let back = Encode::default().apply::<Row>(Input::new(&lists)).unwrap().column;
    assert_eq!(back.as_binary::<i32>().value(0), GOOD);
}

#[test]
fn added_format_selects_headers() {
    let serialized_rows = BinaryArray::from_vec(vec![GOOD]);
    let selection = Selection {
        required: true,
        ..Selection::new("number", RequestedKey::Text("a".into()), Type::parse("int16").unwrap(), Repeat::Last)
    };
    let made = Select { selections: vec![selection], ..Select::default() }
        .apply::<Row>(Input::new(&serialized_rows))
        .unwrap()
        .column;
    assert_eq!(made.as_struct().column(0).as_primitive::<Int16Type>().value(0), 9);
}

#[test]
fn added_format_validation_names_position() {
    let serialized_rows = BinaryArray::from_vec(vec![GOOD, CUT]);
    let errors = Validate::default().apply::<Row>(Input::new(&serialized_rows)).unwrap().column;
    assert!(errors.is_null(0));
    assert_eq!(errors.as_list::<i32>().value_length(1), 1);
    let error = Decode::default().apply::<Row>(Input::new(&serialized_rows)).err().unwrap();
    assert_eq!(error.to_string(), "tiny: value takes 5 bytes and 1 is left (header 1, byte 8, row 1)");
    let column = Decode { on_error: OnError::Column, ..Decode::default() };
    assert_eq!(column.apply::<Row>(Input::new(&serialized_rows)).unwrap().column.as_struct().num_columns(), 2);
}

#[test]
fn added_format_is_inspected_and_read_as_one_message() {
    let found = Inspect { data: CUT, options: ReadOptions::default() }.visit::<Row>();
    assert_eq!(found.errors[0].byte, Some(8));
    assert_eq!(found.labels.last().unwrap().field, "not read");
    let read = ParseMessage { data: GOOD, options: ReadOptions::default(), fresh: GatheredMessage::default };
    let (message, _) = read.visit::<Row>().unwrap();
    assert_eq!(message.headers.len(), 3);
}

#[test]
fn added_format_converts_to_every_target() {
    let serialized_rows = BinaryArray::from_vec(vec![GOOD]);
    let (read, write) = (ReadOptions::default(), WriteOptions::default());
    let operation = Convert { target: Format::Kafka, read, write, on_error: OnError::Raise };
    let made = operation.apply::<Row>(Input::new(&serialized_rows)).unwrap().column;
    assert_eq!(made.as_binary::<i32>().value(0), b"\x06\x02a\x04\x00\x07\x02b\x02x\x02a\x04\x00\x09");
}

#[test]
fn added_format_rejects_what_it_cannot_carry() {
    let long = "k".repeat(256);
    let write = |key: &str, value: Option<&[u8]>| {
        let header = Header { index: 0, key: Key::from(key), value_type: None, value, value_offset: None };
        let options = WriteOptions::default();
        match (EncodeMessage { headers: Some(vec![header]), fields: vec![], options }).encode(&Row::INFO) {
            Err(Error::Headers(_, located)) => located.error.message,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(write("k", None), "the value is null");
    assert_eq!(write(&long, Some(b"")), "key of 256 bytes is longer than 255");
    assert_eq!(write("k", Some(long.as_bytes())), "value of 256 bytes is longer than 255");
}
