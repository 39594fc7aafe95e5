//! Headers formats, one file each. [`Bare`] is the message format that consists of headers only.

pub mod iggy;
pub mod iggy_2023;
pub mod iggy_auto;
mod iggy_shared;
pub mod kafka;
pub mod kip82_int;
pub mod kip82_typed;

use std::marker::PhantomData;

use crate::cursor::Cursor;
use crate::encoding::text_of;
use crate::error::{Code, format_count};
use crate::field::{Field, FieldValue};
use crate::format_info::{Class, Contents, Encoded};
use crate::header::{Header, Key, Text};
use crate::log::{Log, Result};
use crate::memory;
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Open, Opened};
use crate::value::{ByteOrder, bits_of};
use crate::value_type::ValueType;

/// Message format of headers without other fields.
pub struct Bare<B>(PhantomData<B>);

impl<B: HeadersFormat> MessageFormat for Bare<B> {
    const NAME: &'static str = B::NAME;
    const CLASS: Class = Class::Headers;
    const SOURCE: &'static str = B::SOURCE;
    const LAYOUT: &'static str = B::LAYOUT;
    const FIELDS: &'static [Field] = &[Field::HEADERS];

    type Headers = B;
    type Fields<'a> = [FieldValue<'a>; 0];

    fn open<'a, R: Log>(cursor: Cursor<'a>, _: ReadOptions, _: &mut R) -> Open<'a, Self> {
        Ok(Opened { headers: Some(cursor), fields: [] })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        memory::reserve(out, B::encoded_len(message.headers, log)?);
        B::encode_into(message.headers, out);
        Ok(Encoded::Message)
    }
}

/// Parses headers to the end of the cursor, in formats without a header count. `$read` returns `None` for an invalid
/// header after which parsing continues. It is a macro, because the compiler does not always inline a function
/// argument.
macro_rules! parse_to_end {
    ($cursor:ident, $options:ident, $log:ident, $sink:ident, |$index:ident| $read:expr) => {{
        let mut $index = 0;
        while $cursor.remaining() > 0 {
            $log.enter_header(Some($index));
            $options.limits.check_header($index, $cursor.offset(), $log)?;
            if let Some(header) = $read? {
                $sink.header(header, $log)?;
            }
            $index += 1;
        }
        $log.enter_header(None);
        Ok(())
    }};
}
use parse_to_end;

/// Bytes of a text key. A writer passes only keys in the form of the format.
fn text_of_key<'h>(header: &'h Header<'_>) -> &'h [u8] {
    match &header.key {
        Key::Text(text) => text.as_bytes(),
        Key::Int(_) | Key::Typed(..) => unreachable!("a writer passes only keys of this form"),
    }
}

/// Reads a text key; `None` if it is not UTF-8. `instead` converts an invalid key if that is allowed.
#[inline(always)]
fn read_text_key<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    len: usize,
    instead: Option<fn(&[u8]) -> String>,
    log: &mut R,
) -> Result<Option<Key<'a>>> {
    let start = cursor.offset();
    let bytes = cursor.take(len, "key", log)?;
    let key = match (Text::new(bytes), instead) {
        (Ok(text), _) => Some(Key::Text(text)),
        (Err(_), Some(instead)) => Some(Key::from(instead(bytes))),
        (Err(error), None) => {
            log.error(Code::KeyNotUtf8, Some(start + error.valid_up_to()), || "the key is not UTF-8".into())?;
            None
        }
    };
    log.label(start, cursor.offset(), "key", || {
        key.as_ref().map_or_else(String::new, |key| format!("{:?}", key.to_string()))
    });
    if let Some(key) = &key {
        log.name_header(key);
    }
    Ok(key)
}

#[inline(always)]
fn read_nullable<'a, R: Log>(cursor: &mut Cursor<'a>, len: Option<usize>, log: &mut R) -> Result<Option<&'a [u8]>> {
    let Some(len) = len else { return Ok(None) };
    let start = cursor.offset();
    let value = cursor.take(len, "value", log)?;
    log.label(start, cursor.offset(), "value", || describe(value));
    Ok(Some(value))
}

/// Maximum of a signed 32-bit length.
const MAX_LEN: usize = i32::MAX as usize;

fn check_len<R: Log>(field: &str, len: usize, log: &mut R) -> Result {
    match len <= MAX_LEN {
        true => Ok(()),
        false => Err(log.fatal(Code::TooLong, None, || format!("{field} of {len} bytes is too long"))),
    }
}

fn check_total<R: Log>(len: usize, log: &mut R) -> Result<usize> {
    match len <= MAX_LEN {
        true => Ok(len),
        false => Err(log.fatal(Code::TooLarge, None, || format!("the headers take {len} bytes, more than 2 GiB"))),
    }
}

/// Describes a value for a person: its text if printable, else its length.
fn describe(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => format_count(value.len(), "byte"),
    }
}

fn describe_typed(value_type: ValueType, value: &[u8], order: ByteOrder) -> String {
    match (value_type.width(), text_of(value_type, &bits_of(value_type, value, order))) {
        (Some(_), Some(text)) => text,
        _ => describe(value),
    }
}

#[cold]
fn unknown_type<R: Log>(field: &str, code: u8, byte: usize, log: &mut R) -> Result {
    log.error(Code::UnknownType, Some(byte), || format!("{field} code {code} is unknown"))
}
