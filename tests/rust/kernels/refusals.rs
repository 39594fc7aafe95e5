//! Arguments that operations reject before they read a row, and messages that writers reject.

use arrow_array::BinaryArray;
use letterhead::arrow::messages::Messages;
use letterhead::arrow::{Apply, Convert, Decode, Encode, Input, Operation, Select};
use letterhead::encoding::Encoding;
use letterhead::error::{Code, Error};
use letterhead::field::FieldValue;
use letterhead::format::Format::{self, *};
use letterhead::format_info::Class;
use letterhead::log::{OnError, OnLoss};
use letterhead::op::convert::convert_message;
use letterhead::op::values::ParseMessage;
use letterhead::op::write::EncodeMessage;
use letterhead::options::WriteOptions;
use letterhead::sink::GatheredMessage;
use letterhead::type_option::{TypeOption, TypesByKey};

use crate::common::{Head, Held, HeldKey, Message, STRICT, other_fields, write};

/// Error of an operation that rejects a format.
fn refused(format: Format, operation: &impl Operation) -> String {
    match format.visit(Apply(operation, Input::new(&BinaryArray::from_vec(vec![])))).err() {
        Some(Error::Value(text) | Error::Type(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn convert_to(target: Format, write: WriteOptions) -> Convert {
    Convert { target, read: STRICT, write, on_error: OnError::Raise }
}

fn batches() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| format.info().class == Class::Batch)
}

#[test]
fn single_message_operations_reject_batch() {
    for format in batches() {
        let name = format.info().name;
        let said = format!("{name} is a batch: read it with messages");
        assert_eq!(refused(format, &Decode::default()), said);
        assert_eq!(refused(format, &Encode::default()), said);
        assert_eq!(refused(format, &Select::default()), said);
        let read = format.visit(ParseMessage { data: b"", options: STRICT, fresh: GatheredMessage::default });
        assert_eq!(read.err(), Some(Error::Value(said.clone())));
        let written =
            (EncodeMessage { headers: None, fields: vec![], options: WriteOptions::default() }).encode(format.info());
        assert_eq!(written, Err(Error::Value(said)));
    }
}

#[test]
fn convert_refuses_a_batch_at_either_end() {
    for format in batches() {
        let name = format.info().name;
        let source = format!("{name} is a batch: convert its messages one by one");
        let target = format!("{name} is a batch and no target");
        assert_eq!(refused(format, &convert_to(Kafka, WriteOptions::default())), source);
        assert_eq!(refused(Kafka, &convert_to(format, WriteOptions::default())), target);
        let options = WriteOptions::default;
        assert_eq!(convert_message(b"", format, Kafka, STRICT, options()), Err(Error::Value(source)));
        assert_eq!(convert_message(b"", Kafka, format, STRICT, options()), Err(Error::Value(target)));
    }
}

#[test]
fn messages_operation_rejects_non_batch() {
    assert_eq!(refused(Kafka, &Messages::default()), "kafka is not a batch: read it with decode");
}

#[test]
fn iggy_auto_is_no_target() {
    let said = "iggy-auto reads either layout and is no target: name iggy or iggy-2023";
    assert_eq!(refused(Kafka, &convert_to(IggyAuto, WriteOptions::default())), said);
    let operation = EncodeMessage { headers: Some(vec![]), fields: vec![], options: WriteOptions::default() };
    assert_eq!(operation.encode(IggyAuto.info()), Err(Error::Value(said.into())));
}

#[test]
fn canonical_is_for_iggy_only() {
    let options = || WriteOptions { canonical: true, ..WriteOptions::default() };
    for format in Format::ALL.iter().copied().filter(|format| format.info().is_target) {
        let fields = other_fields(format).map(|_| FieldValue::Null).collect();
        let written = (EncodeMessage { headers: None, fields, options: options() }).encode(format.info());
        let name = format.info().name;
        let said = Error::Value(format!("canonical=True: {name} has no order of its own for headers"));
        assert_eq!(written == Err(said), !["iggy", "iggy-message"].contains(&name), "{name}");
    }
}

#[test]
fn types_that_a_target_cannot_have_are_rejected() {
    let encode = |format: Format, types| {
        let options = WriteOptions { types, ..WriteOptions::default() };
        (EncodeMessage { headers: None, fields: vec![], options }).encode(format.info())
    };
    for format in [Iggy, Iggy2023, Kip82Typed] {
        let error = encode(format, TypeOption::Untyped(Encoding::Text)).unwrap_err().to_string();
        assert!(error.ends_with("has types: give types={key: type} or types=\"binary\""), "{error}");
    }
    for format in [Kafka, Kip82Int] {
        for types in [TypeOption::Binary, TypeOption::ByKey(TypesByKey::default())] {
            let error = encode(format, types).unwrap_err().to_string();
            assert!(error.ends_with("carries none: give types=\"be\", \"le\" or \"text\""), "{error}");
        }
    }
}

/// Error of a writer for a message with these fields and without headers.
fn refused_fields(format: Format, fields: Vec<Held>) -> (Code, String) {
    let error = write(format, &Message { headers: None, fields }, WriteOptions::default()).expect_err("refused");
    assert_eq!((error.byte, error.header), (None, None));
    (error.code, error.message)
}

/// Fields of a KIP-82 message with this magic and these attributes.
fn kip82_fields(magic: i128, attributes: i128) -> Vec<Held> {
    let numbers = [Held::Null, Held::Null, Held::Number(magic), Held::Number(attributes)];
    numbers.into_iter().chain([Held::Null, Held::Null, Held::Bytes(vec![1]), Held::Null]).collect()
}

const KIP82_MESSAGES: [Format; 3] = [Kip82Message, Kip82MessageInt, Kip82MessageWrapper];

#[test]
fn a_magic_that_no_reader_knows_is_not_written() {
    for format in KIP82_MESSAGES {
        for magic in [3, -1] {
            let said = format!("magic {magic} is unknown: 0, 1 and 2 are known");
            assert_eq!(refused_fields(format, kip82_fields(magic, 0)), (Code::BadMagic, said));
        }
    }
}

#[test]
fn attribute_bits_that_are_not_defined_are_not_written() {
    for format in KIP82_MESSAGES {
        for (magic, attributes, bits) in [(2, 0x20, "20"), (2, -128, "80"), (1, 0x40, "40"), (0, 0x08, "08")] {
            let said = format!("attribute bits 0x{bits} are not defined");
            assert_eq!(refused_fields(format, kip82_fields(magic, attributes)), (Code::BadAttributes, said));
        }
    }
}

#[test]
fn headers_in_message_without_headers_are_loss() {
    let head = Head { key: HeldKey::Int(1), value_type: None, value: None };
    for (magic, name) in [(0, "magic 0 has no headers"), (1, "magic 1 has no headers")] {
        let message = Message { headers: Some(vec![head.clone()]), fields: kip82_fields(magic, 0) };
        let error = write(Kip82MessageInt, &message, WriteOptions::default()).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::FieldNotCarried, name));
        let dropped = WriteOptions { on_loss: OnLoss::Drop, ..WriteOptions::default() };
        let bare = Message { headers: None, ..message.clone() };
        assert_eq!(write(Kip82MessageInt, &message, dropped.clone()), write(Kip82MessageInt, &bare, dropped));
    }
}

#[test]
fn an_id_of_another_size_is_not_written() {
    let said = "id of 3 bytes where 16 are needed".to_string();
    let payload = Held::Bytes(vec![1]);
    let fields = vec![Held::Bytes(vec![1, 2, 3]), payload];
    assert_eq!(refused_fields(IggyMessage2023, fields), (Code::WrongSize, said));
}

#[test]
fn negative_numbers_are_not_written_where_there_is_no_sign() {
    for (place, name) in [(2, "offset"), (3, "timestamp"), (4, "origin timestamp")] {
        let mut fields = vec![Held::Null; 5];
        fields.push(Held::Bytes(vec![]));
        fields[place] = Held::Number(-1);
        assert_eq!(refused_fields(IggyMessage, fields), (Code::OutOfRange, format!("{name} -1 is negative")));
    }
}

#[test]
fn null_payload_is_loss_and_written_as_none() {
    for (format, count) in [(IggyMessage2023, 2), (IggyMessage, 6)] {
        let message = |payload| {
            let mut fields = vec![Held::Null; count - 1];
            fields.push(payload);
            Message { headers: None, fields }
        };
        assert_eq!(
            refused_fields(format, message(Held::Null).fields),
            (Code::NullNotCarried, "the payload is null".into())
        );
        let dropped = || WriteOptions { on_loss: OnLoss::Drop, ..WriteOptions::default() };
        let empty = write(format, &message(Held::Bytes(vec![])), dropped());
        assert_eq!(write(format, &message(Held::Null), dropped()), empty);
    }
}

#[test]
fn null_headers_become_none_or_are_rejected() {
    let refusing = || WriteOptions { refuse_null_headers: true, ..WriteOptions::default() };
    let empty = Message { headers: None, fields: vec![] };
    for format in [Kafka, Kip82Typed, Kip82Int, Iggy, Iggy2023] {
        assert_eq!(write(format, &empty, WriteOptions::default()), Ok(Some(vec![])));
        assert_eq!(write(format, &empty, refusing()).unwrap_err().code, Code::NullNotCarried);
        assert_eq!(write(format, &Message::block(vec![]), refusing()), Ok(Some(vec![])));
    }
}

/// Error of a writer for one header.
fn refused_head(format: Format, key: HeldKey, value: Option<&[u8]>) -> (Code, String) {
    let value_type =
        (format != Kafka && value.is_some()).then(|| letterhead::value_type::ValueType::parse("binary").unwrap());
    let head = Head { key, value_type, value: value.map(<[u8]>::to_vec) };
    let error = write(format, &Message::block(vec![head]), WriteOptions::default()).expect_err("refused");
    assert_eq!((error.byte, error.header), (None, Some(0)));
    (error.code, error.message)
}

#[test]
fn parts_that_iggy_has_no_length_for_are_losses() {
    let long = "k".repeat(256);
    for format in [Iggy, Iggy2023] {
        let refused = |key: &str, value| refused_head(format, key.into(), value);
        assert_eq!(refused("", Some(b"v")), (Code::EmptyKey, "the key has no bytes".into()));
        assert_eq!(refused(&long, Some(b"v")), (Code::TooLong, "key of 256 bytes is longer than 255".into()));
        assert_eq!(refused("k", Some(b"")), (Code::EmptyValue, "the value has no bytes".into()));
        assert_eq!(
            refused("k", Some(long.as_bytes())),
            (Code::TooLong, "value of 256 bytes is longer than 255".into())
        );
        assert_eq!(refused("k", None), (Code::NullNotCarried, "the value is null".into()));
    }
}

#[test]
fn keys_that_the_target_has_no_form_for_are_losses() {
    let typed = |name: &str, bits: &[u8]| {
        HeldKey::Typed(letterhead::value_type::ValueType::parse(name).unwrap(), bits.to_vec())
    };
    let of = |key| refused_head(Kafka, key, None).1;
    assert_eq!(of(HeldKey::Int(3)), "the key is int32");
    assert_eq!(of(typed("int8", &[3])), "the key is int8");
    assert_eq!(of(typed("binary", &[3])), "the key is binary and has no text form");
    assert_eq!(of(typed("string", &[0xff])), "the key is string and has no text form");
    for key in ["", "a", "+1", "01", "-0", "2147483648"] {
        assert_eq!(
            refused_head(Kip82Int, key.into(), None),
            (Code::KeyNotCarried, "the key is no decimal int32".into())
        );
    }
    assert_eq!(refused_head(Kip82Int, typed("int8", &[3]), None).1, "the key is int8");
    assert_eq!(refused_head(Kip82Int, typed("uint32", &[0xff; 4]), None).1, "the key is no decimal int32");
    assert_eq!(refused_head(Kip82Int, typed("bool", &[1]), None).1, "the key is no decimal int32");
}
