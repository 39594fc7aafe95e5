//! Joins and splits values of stores with headers (KIP-1271) at every write and read.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::HeadersArgument;
use super::gil::enter;
use super::objects::bytes_object;
use crate::error::Error;
use crate::field::FieldValue;
use crate::formats::message::streams::Streams;
use crate::formats::message::streams_timestamped::StreamsTimestamped;
use crate::header::Header;
use crate::limits::Limits;
use crate::op::values::open_message;
use crate::op::write::EncodeMessage;
use crate::options::WriteOptions;
use crate::traits::MessageFormat;

/// Returns the stored bytes of a value, its headers and its timestamp, which sessions and versions lack.
#[pyfunction]
#[pyo3(signature = (headers, timestamp, payload, /))]
pub fn join_value<'py>(
    py: Python<'py>,
    headers: &Bound<'py, PyAny>,
    timestamp: Option<i64>,
    payload: &Bound<'py, PyBytes>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    enter(|| {
        let format = if timestamp.is_some() { StreamsTimestamped::NAME } else { Streams::NAME };
        let argument = HeadersArgument::of(headers)?;
        let headers = argument.headers(format)?;
        let result = join(headers, timestamp, payload.as_bytes())?;
        result.map(|bytes| bytes_object(py, &bytes)).transpose()
    })
}

fn join(headers: Vec<Header<'_>>, timestamp: Option<i64>, payload: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let (headers, options) = (Some(headers), WriteOptions::default());
    let payload = FieldValue::Binary(payload);
    match timestamp {
        Some(millis) => {
            let fields = vec![FieldValue::Int64(millis), payload];
            EncodeMessage { headers, fields, options }.encode(&StreamsTimestamped::INFO)
        }
        None => EncodeMessage { headers, fields: vec![payload], options }.encode(&Streams::INFO),
    }
}

/// Splits a stored value to `(payload, timestamp or None, start, end)`. Its headers, from start to end, are not parsed.
/// A value with more than `message_bytes` bytes is rejected; `None` means no limit.
#[pyfunction]
#[pyo3(signature = (value, timestamped, message_bytes=None, /))]
pub fn split_value<'py>(
    py: Python<'py>,
    value: &[u8],
    timestamped: bool,
    message_bytes: Option<usize>,
) -> PyResult<SplitTuple<'py>> {
    enter(|| {
        let limits = Limits { message_bytes: message_bytes.unwrap_or(usize::MAX), ..Limits::DEFAULT };
        let split = if timestamped { split::<StreamsTimestamped> } else { split::<Streams> };
        let (payload, timestamp, headers) = split(value, limits)?;
        Ok((bytes_object(py, payload)?, timestamp, headers.start, headers.end))
    })
}

type SplitTuple<'py> = (Bound<'py, PyBytes>, Option<i64>, usize, usize);

/// The payload, the timestamp, and the range of the headers.
type Split<'a> = (&'a [u8], Option<i64>, Range<usize>);

fn split<E: MessageFormat>(value: &[u8], limits: Limits) -> Result<Split<'_>, Error> {
    limits.check_size(value.len(), E::NAME)?;
    let opened = open_message::<E>(value)?;
    let (mut payload, mut timestamp) = (&[][..], None);
    for field in opened.fields.as_ref() {
        match field {
            FieldValue::Int64(millis) => timestamp = Some(*millis),
            FieldValue::Binary(bytes) => payload = bytes,
            _ => {}
        }
    }
    let headers = opened.headers.map_or(0..0, |headers| headers.offset()..headers.offset() + headers.remaining());
    Ok((payload, timestamp, headers))
}
