//! Rows of stores that keep headers, as reads and writes of a store see them: opened with the headers left in their bytes,
//! and sealed again.

use letterhead::field::FieldValue;
use letterhead::format::Format;
use letterhead::formats::message::streams::Streams;
use letterhead::formats::message::streams_timestamped::StreamsTimestamped;
use letterhead::op::values::open_message;
use letterhead::options::WriteOptions;
use letterhead::traits::MessageFormat;

use super::{Target, named};
use crate::common::{Held, Message, STRICT, read, write};

pub const TARGET: Target = Target { name: "stored", subjects: || vec![Streams::NAME, StreamsTimestamped::NAME], check };

fn check(name: &str, row: &[u8]) {
    match named(name) {
        Format::StreamsTimestamped => opened_alike::<StreamsTimestamped>(row),
        _ => opened_alike::<Streams>(row),
    }
}

fn opened_alike<E: MessageFormat>(row: &[u8]) {
    let format = named(E::NAME);
    let whole = read(format, row, STRICT);
    let opened = match open_message::<E>(row) {
        Ok(opened) => opened,
        Err(_) => {
            assert!(whole.is_err(), "what cannot be opened cannot be read");
            return;
        }
    };
    let block = opened.headers.expect("a value of a store has headers");
    let (start, end) = (block.offset(), block.offset() + block.remaining());
    assert!(start <= end && end <= row.len());
    let fields: Vec<Held> = opened.fields.as_ref().iter().map(Held::from).collect();
    let [.., FieldValue::Binary(payload)] = opened.fields.as_ref() else { panic!("a value of a store has a payload") };
    assert!(row.ends_with(payload));
    // The headers are the same as in the block alone.
    match (read(Format::Kafka, &row[start..end], STRICT), whole) {
        (Ok(mut block), Ok(mut whole)) => {
            let (block, whole) = (block.remove(0), whole.remove(0));
            assert_eq!((&block.headers, &fields), (&whole.headers, &whole.fields));
            sealed_again(format, &Message { headers: block.headers, fields });
        }
        (Err(alone), Err(mut within)) => {
            within.byte = within.byte.map(|byte| byte - start);
            assert_eq!(alone, within);
        }
        (block, whole) => panic!("{block:?} {whole:?}"),
    }
}

fn sealed_again(format: Format, message: &Message) {
    let sealed = write(format, message, WriteOptions::default()).expect("what is read can be written");
    let sealed = sealed.expect("there is a payload");
    assert_eq!(read(format, &sealed, STRICT).expect("what is written is read"), std::slice::from_ref(message));
}
