//! Message formats, one file each, and the field conversions that they share.

pub mod iggy_message;
pub mod iggy_message_2023;
pub mod kip82_message;
pub mod kip82_wrapper;
pub mod legacy;
pub mod streams;
pub mod streams_timestamped;

use crate::cursor::Cursor;
use crate::error::{Code, Loss, bad_length, format_count};
use crate::field::FieldValue;
use crate::log::{Log, Result};
use crate::memory;
use crate::value::ByteOrder::Big;

pub fn number_or(field: FieldValue<'_>, null: i64) -> i64 {
    match field {
        FieldValue::Int64(number) => number,
        _ => null,
    }
}

pub fn bytes_of(field: FieldValue<'_>) -> Option<&[u8]> {
    if let FieldValue::Binary(bytes) = field { Some(bytes) } else { None }
}

/// Converts a field to an unsigned number; null is 0.
fn unsigned<R: Log>(field: FieldValue<'_>, name: &str, log: &mut R) -> Result<u64> {
    match field {
        FieldValue::Uint64(number) => Ok(number),
        FieldValue::Int64(number) => u64::try_from(number)
            .map_err(|_| log.fatal(Code::OutOfRange, None, || format!("{name} {number} is negative"))),
        _ => Ok(0),
    }
}

/// Converts a field to an id in big-endian order; null is 0.
fn id_of<R: Log>(field: FieldValue<'_>, log: &mut R) -> Result<[u8; 16]> {
    match field {
        FieldValue::Id(id) => Ok(id),
        FieldValue::Binary(bytes) => bytes.try_into().map_err(|_| {
            let stored = format_count(bytes.len(), "byte");
            log.fatal(Code::WrongSize, None, || format!("id of {stored} where 16 are needed"))
        }),
        _ => Ok([0; 16]),
    }
}

/// Converts a field to a payload, in a format without null payloads.
fn payload_of<'a, R: Log>(field: FieldValue<'a>, log: &mut R) -> Result<&'a [u8]> {
    match field {
        FieldValue::Binary(payload) if u32::try_from(payload.len()).is_err() => {
            let (code, message) = bad_length("payload", payload.len(), u32::MAX as usize);
            Err(log.fatal(code, None, || message))
        }
        FieldValue::Binary(payload) => Ok(payload),
        _ => {
            let lost = || Loss::of_message(Code::NullNotCarried, "the payload is null");
            log.loss(false, || Loss { written: Some("empty"), ..lost() })?;
            Ok(&[])
        }
    }
}

/// Converts an unsigned number to a field of type int64.
pub fn signed<R: Log>(number: u64, field: &'static str, byte: usize, log: &mut R) -> Result<FieldValue<'static>> {
    match i64::try_from(number) {
        Ok(number) => Ok(FieldValue::Int64(number)),
        Err(_) => {
            log.error(Code::OutOfRange, Some(byte), || format!("{field} does not fit int64"))?;
            Ok(FieldValue::Null)
        }
    }
}

/// Reads `int32 length or -1, bytes`, after which no headers follow. Reports an error and returns `None` if they are
/// unreadable.
fn nullable_bytes<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    length: &'static str,
    field: &'static str,
    log: &mut R,
) -> Result<Option<FieldValue<'a>>> {
    let start = cursor.offset();
    let Some(len) = cursor.number_or_error::<i32, _>(length, Big, log)? else { return Ok(None) };
    match usize::try_from(len) {
        Ok(len) => Ok(cursor.take_or_error(len, field, log)?.map(FieldValue::Binary)),
        Err(_) if len == -1 => Ok(Some(FieldValue::Null)),
        Err(_) => {
            log.error(Code::NegativeLength, Some(start), || format!("{length} {len} is negative"))?;
            Ok(None)
        }
    }
}

/// Writes bytes for [`nullable_bytes`].
fn write_nullable<R: Log>(field: &str, bytes: Option<&[u8]>, log: &mut R, out: &mut Vec<u8>) -> Result {
    let len = bytes.map_or(Ok(-1), |bytes| i32::try_from(bytes.len()).map_err(|_| bytes.len()));
    let len = len.map_err(|len| {
        let (code, message) = bad_length(field, len, i32::MAX as usize);
        log.fatal(code, None, || message)
    })?;
    out.extend_from_slice(&len.to_be_bytes());
    memory::extend(out, bytes.unwrap_or_default());
    Ok(())
}
