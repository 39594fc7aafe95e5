//! Written messages are read back unchanged, and messages that a reader would reject are not written.

use letterhead::arrow::{Decode, Encode};
use letterhead::error::Code;
use letterhead::format::Format;
use letterhead::header::KeyForm;
use letterhead::options::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::value_type::{Scalar, TypeCodes, ValueType};
use proptest::prelude::*;

use super::generated::{any_head, kinds_for, parts, recipe, targets};
use super::{cases, whole_values};
use crate::columns::{apply, apply_to};
use crate::common::{Head, HeldKey, Message, STRICT, errors, read, write};

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn decoded_values_are_written_and_decoded_again(recipes in prop::collection::vec(recipe(), 1..4)) {
        for format in targets() {
            let serialized_rows = whole_values(&recipes, format);
            for serialized in &serialized_rows {
                let message = read(format, serialized, STRICT).expect("whole").remove(0);
                let written = write(format, &message, WriteOptions::default());
                let said = |error| TestCaseError::fail(format!("{format:?}: {error:?} {serialized:02x?}"));
                let written = written.map_err(said)?.expect("there was a value");
                prop_assert_eq!(read(format, &written, STRICT), Ok(vec![message]));
            }
            let read = apply(format, &Decode::default(), &serialized_rows).expect("whole");
            let written = apply_to(format, &Encode::default(), &read).expect("what is read can be written");
            prop_assert_eq!(&apply_to(format, &Decode::default(), &written).expect("whole"), &read);
        }
    }
}

/// Header as a format stores it.
fn as_carried(head: &Head, format: Format) -> Head {
    let key = match &head.key {
        HeldKey::Typed(value_type, bits) => HeldKey::typed(*value_type, bits),
        other => other.clone(),
    };
    let key = match (format.info().keys, &key) {
        (KeyForm::Int, HeldKey::Text(text)) => HeldKey::Int(text.parse().expect("a decimal int32")),
        _ => key,
    };
    let value_type = match format.info().types {
        TypeCodes::None => None,
        _ => head.value.as_ref().map(|_| head.value_type.unwrap_or(ValueType::Named(Scalar::Binary))),
    };
    Head { key, value_type, value: head.value.clone() }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn values_written_without_loss_round_trip(
        heads in prop::collection::vec(any_head(), 1..4),
        parts in parts(),
    ) {
        for format in targets() {
            for types in [TypeOption::Unset, kinds_for(format)] {
                let options = WriteOptions { types, ..WriteOptions::default() };
                let mut message = parts.message(format);
                message.headers = Some(heads.clone());
                let Ok(Some(serialized)) = write(format, &message, options) else { continue };
                let read = read(format, &serialized, STRICT);
                let read = read.map_err(|error| TestCaseError::fail(format!("{format:?} {heads:?}: {error:?}")))?;
                let carried: Vec<_> = heads.iter().map(|head| as_carried(head, format)).collect();
                prop_assert_eq!(read[0].heads(), &carried[..], "{:?}", format);
            }
        }
    }
}

#[test]
fn headers_in_compressed_message_are_rejected_everywhere() {
    // One header; attributes with codec 1 and bit 4.
    let mut serialized = vec![0; 12];
    serialized.extend([0, 0, 0, 0, 2, 0x11]);
    serialized.extend([0; 8]);
    serialized.extend([0xff; 4]);
    serialized.extend([0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    serialized[11] = serialized.len() as u8 - 12;
    let crc = letterhead::formats::checksum::crc32(&serialized[16..]);
    serialized[12..16].copy_from_slice(&crc.to_be_bytes());
    let codes: Vec<_> = errors(Format::Kip82MessageInt, &serialized, STRICT).iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::BadAttributes]);
}

/// Error of the format `iggy` for a header with this key.
fn refused_key(value_type: Scalar, bits: &[u8]) -> Option<Code> {
    let key = HeldKey::Typed(ValueType::Named(value_type), bits.to_vec());
    let head = Head { key, value_type: Some(ValueType::Named(Scalar::Binary)), value: Some(vec![1]) };
    write(Format::Iggy, &Message::block(vec![head]), WriteOptions::default()).err().map(|error| error.code)
}

#[test]
fn key_size_that_contradicts_its_kind_is_not_written() {
    assert_eq!(refused_key(Scalar::Int32, &[1, 2, 3]), Some(Code::WrongSize));
}

#[test]
fn key_of_kind_unknown_to_format_is_not_written() {
    assert_eq!(refused_key(Scalar::Char, &[0, 65]), Some(Code::KeyNotCarried));
}
