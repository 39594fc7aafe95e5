//! What is written is read as it was, and what a reader would refuse is not written.

use letterhead::arrow::{Decode, Encode};
use letterhead::ask::Asked;
use letterhead::error::Code;
use letterhead::format::Format;
use letterhead::header::KeyForm;
use letterhead::kind::{Kind, Kinds, Scalar};
use letterhead::walk::WriteOptions;
use proptest::prelude::*;

use crate::columns::{apply, apply_to};
use crate::common::{Head, HeldKey, Message, STRICT, faults, read, write};
use crate::generated::{any_head, kinds_for, parts, recipe, targets};
use crate::{cases, whole_cells};

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn what_is_read_is_written_and_read_again(recipes in prop::collection::vec(recipe(), 1..4)) {
        for format in targets() {
            let cells = whole_cells(&recipes, format);
            for cell in &cells {
                let message = read(format, cell, STRICT).expect("whole").remove(0);
                let written = write(format, &message, WriteOptions::default());
                let said = |fault| TestCaseError::fail(format!("{format:?}: {fault:?} {cell:02x?}"));
                let written = written.map_err(said)?.expect("there was a cell");
                prop_assert_eq!(read(format, &written, STRICT), Ok(vec![message]));
            }
            let read = apply(format, &Decode::default(), &cells).expect("whole");
            let written = apply_to(format, &Encode::default(), &read).expect("what is read can be written");
            prop_assert_eq!(&apply_to(format, &Decode::default(), &written).expect("whole"), &read);
        }
    }
}

/// A header as a format that carries it has it.
fn as_carried(head: &Head, format: Format) -> Head {
    let key = match &head.key {
        HeldKey::Typed(kind, bits) => HeldKey::typed(*kind, bits),
        other => other.clone(),
    };
    let key = match (format.info().keys, &key) {
        (KeyForm::Int, HeldKey::Text(text)) => HeldKey::Int(text.parse().expect("a decimal int32")),
        _ => key,
    };
    let kind = match format.info().kinds {
        Kinds::None => None,
        _ => head.value.as_ref().map(|_| head.kind.unwrap_or(Kind::Named(Scalar::Binary))),
    };
    Head { key, kind, value: head.value.clone() }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn what_is_written_without_loss_is_read_as_it_was(
        heads in prop::collection::vec(any_head(), 1..4),
        parts in parts(),
    ) {
        for format in targets() {
            for kinds in [Asked::Nothing, kinds_for(format)] {
                let options = WriteOptions { kinds, ..WriteOptions::default() };
                let mut message = parts.message(format);
                message.headers = Some(heads.clone());
                let Ok(Some(cell)) = write(format, &message, options) else { continue };
                let read = read(format, &cell, STRICT);
                let read = read.map_err(|fault| TestCaseError::fail(format!("{format:?} {heads:?}: {fault:?}")))?;
                let carried: Vec<_> = heads.iter().map(|head| as_carried(head, format)).collect();
                prop_assert_eq!(read[0].heads(), &carried[..], "{:?}", format);
            }
        }
    }
}

#[test]
fn headers_of_a_compressed_message_are_refused_by_readers_as_by_writers() {
    // One header, and codec 1 beside bit 4.
    let mut cell = vec![0; 12];
    cell.extend([0, 0, 0, 0, 2, 0x11]);
    cell.extend([0; 8]);
    cell.extend([0xff; 4]);
    cell.extend([0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    cell[11] = cell.len() as u8 - 12;
    let crc = letterhead::formats::checksum::crc32(&cell[16..]);
    cell[12..16].copy_from_slice(&crc.to_be_bytes());
    let codes: Vec<_> = faults(Format::Kip82MessageInt, &cell, STRICT).iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [Code::BadAttributes]);
}

/// What `iggy` says to a header with this key.
fn refused_key(kind: Scalar, bits: &[u8]) -> Option<Code> {
    let key = HeldKey::Typed(Kind::Named(kind), bits.to_vec());
    let head = Head { key, kind: Some(Kind::Named(Scalar::Binary)), value: Some(vec![1]) };
    write(Format::Iggy, &Message::block(vec![head]), WriteOptions::default()).err().map(|fault| fault.code)
}

#[test]
fn a_key_of_another_size_than_its_kind_is_not_written() {
    assert_eq!(refused_key(Scalar::Int32, &[1, 2, 3]), Some(Code::WrongSize));
}

#[test]
fn a_key_of_a_kind_that_the_format_has_not_is_not_written() {
    assert_eq!(refused_key(Scalar::Char, &[0, 65]), Some(Code::KeyNotCarried));
}
