//! A message that was read is written and read again, alone and in columns, without a change.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use letterhead::arrow::{Decode, Encode};
use letterhead::field::Role;
use letterhead::format::{Format, Visitor};
use letterhead::format_info::Class;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::traits::{BatchFormat, HeadersFormat, MessageFormat};

use super::serialized_rows::Layout;
use super::{Shape, Target, formats, named, seal};
use crate::columns::apply_to;
use crate::common::{Message, STRICT, other_fields, read, write};

pub const TARGET: Target =
    Target { name: "roundtrip", subjects: || formats(|info| info.class != Class::Batch && info.is_target), check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, serialized))) = (named(name), Shape::split(data)) else { return };
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let mut serialized = serialized.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let Ok(mut messages) = read(format, &serialized, options) else { return };
    let message = messages.remove(0);
    let canonical = shape.bit(3) && format.visit(HasOneOrder);
    let Some(written) = written(format, &message, canonical) else { return };
    let again = read(format, &written, STRICT).expect("what is written is read").remove(0);
    assert_eq!(self::written(format, &again, canonical).as_ref(), Some(&written), "it is written as it was");
    if canonical {
        assert_eq!(again.heads().len(), message.heads().len());
        return;
    }
    if options.lenient || written.len() < serialized.len() {
        // A shorter form of the same message has another checksum, and an empty list may become a missing one.
        assert_eq!(without_derived(again, format), without_derived(message, format));
    } else {
        assert_eq!(again, message);
    }
    if options.lenient {
        return;
    }
    assert!(written.len() <= serialized.len(), "nothing is written longer than it was");
    if written.len() == serialized.len() {
        assert_eq!(written, serialized, "there is one shortest way to write a message");
    }
    through_columns(format, &serialized, &written);
}

fn written(format: Format, message: &Message, canonical: bool) -> Option<Vec<u8>> {
    let options = WriteOptions { canonical, ..WriteOptions::default() };
    write(format, message, options).expect("what is read can be written")
}

/// The content of a message, whatever its bytes.
fn without_derived(message: Message, format: Format) -> Message {
    let fields = other_fields(format).zip(message.fields).filter(|(field, _)| field.role != Role::Derived);
    Message { headers: Some(message.headers.unwrap_or_default()), fields: fields.map(|(_, held)| held).collect() }
}

/// The same for the value among others, some of them too short or too long for the kernels.
fn through_columns(format: Format, serialized: &[u8], written: &[u8]) {
    let rows = [Some(serialized), None, Some(serialized)];
    let column = Layout::Small.column(&rows, &[]);
    let lists = apply_to(format, &Decode::default(), &column).expect("it was read");
    let serialized_rows = apply_to(format, &Encode::default(), &lists).expect("what is read can be written");
    let serialized_rows = serialized_rows.as_binary::<i32>();
    for place in [0, 2] {
        assert_eq!(serialized_rows.value(place), written);
    }
    let alone = apply_to(format, &Encode::default(), &lists.slice(2, 1)).expect("as above");
    assert_eq!(alone.as_binary::<i32>().value(0), written);
    if written == serialized {
        assert_eq!(&apply_to(format, &Decode::default(), &alone).expect("as above"), &lists.slice(2, 1));
    }
}

/// Whether a format has one order for headers.
struct HasOneOrder;

impl Visitor for HasOneOrder {
    type Out = bool;

    fn visit<E: MessageFormat>(self) -> bool {
        E::Headers::CANONICAL.is_some()
    }

    fn visit_batch<B: BatchFormat>(self) -> bool {
        false
    }
}
