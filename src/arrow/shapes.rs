//! [`plain`] converts header columns of other shapes to lists of keys and values: maps, text values, binary keys, other
//! field names, dictionaries, list views, and lists of alternating keys and values.
//!
//! Buffers are shared, except those of dictionaries, list views and alternating lists, whose values are copied.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, GenericByteArray, GenericListArray, GenericListViewArray,
    LargeBinaryArray, LargeStringArray, OffsetSizeTrait, StringArray, StructArray, make_array, new_null_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field, Fields};

use super::schema;
use crate::error::Error;
use crate::format_info::{Class, FormatInfo};
use crate::memory;

/// Field names of a key and of a value, in the order of the search.
const NAMES: [(&str, &str); 3] = [("key", "value"), ("name", "value"), ("k", "v")];

/// Maximum number of elements of a column built from a dictionary or list views.
const MAX_ELEMENTS: usize = i32::MAX as usize;

/// Converts a column to the shape that operations on a format read. A column of an unknown shape is returned unchanged.
///
/// `drops_fields`: other fields of headers are ignored.
pub fn plain(column: ArrayRef, format: &FormatInfo, drops_fields: bool) -> Result<ArrayRef, Error> {
    match column.data_type() {
        DataType::Dictionary(..) => plain(expand_dictionary(&column)?, format, drops_fields),
        _ if format.class != Class::Headers => Ok(column),
        DataType::Map(..) => {
            let map = column.as_map();
            let entries = map.entries();
            let named = vec![("key", Arc::clone(entries.column(0))), ("value", Arc::clone(entries.column(1)))];
            let renamed = struct_with(named, entries.nulls(), None)?;
            list(map.offsets().clone(), Arc::new(renamed), map.nulls(), drops_fields)
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            convert_elements(lists, drops_fields).unwrap_or(Ok(column))
        }
        DataType::LargeList(_) => {
            let lists = column.as_list::<i64>();
            convert_elements(lists, drops_fields).unwrap_or(Ok(column))
        }
        DataType::FixedSizeList(..) => plain(from_fixed(column.as_fixed_size_list())?, format, drops_fields),
        DataType::ListView(_) => plain(from_views(column.as_list_view::<i32>())?, format, drops_fields),
        DataType::LargeListView(_) => plain(from_views(column.as_list_view::<i64>())?, format, drops_fields),
        _ => Ok(column),
    }
}

/// Converts the elements of lists; `None` if they have the right shape, or are not headers.
fn convert_elements<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    drops_fields: bool,
) -> Option<Result<ArrayRef, Error>> {
    let elements = lists.values();
    if let Some(headers) = elements.as_struct_opt() {
        let headers = headers_of(headers, drops_fields)?;
        return Some(headers.and_then(|headers| list_of(lists.offsets().clone(), Arc::new(headers), lists.nulls())));
    }
    is_text(elements.data_type()).then(|| from_alternating(lists, drops_fields))
}

fn list<O: OffsetSizeTrait>(
    offsets: OffsetBuffer<O>,
    headers: ArrayRef,
    nulls: Option<&NullBuffer>,
    drops_fields: bool,
) -> Result<ArrayRef, Error> {
    match headers_of(headers.as_struct(), drops_fields) {
        Some(headers) => list_of(offsets, Arc::new(headers?), nulls),
        None => list_of(offsets, headers, nulls),
    }
}

fn list_of<O: OffsetSizeTrait>(
    offsets: OffsetBuffer<O>,
    elements: ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, Error> {
    let element = schema::nullable("element", elements.data_type().clone());
    Ok(Arc::new(GenericListArray::<O>::try_new(element, offsets, elements, nulls.cloned()).map_err(malformed)?))
}

fn malformed(error: arrow_schema::ArrowError) -> Error {
    Error::Type(format!("the Arrow data is malformed: {error}"))
}

/// Converts headers to text keys and binary values; `None` if they have these, or are not headers.
#[inline(never)]
fn headers_of(headers: &StructArray, drops_fields: bool) -> Option<Result<StructArray, Error>> {
    let names = headers.column_names();
    if names.contains(&"key_type") {
        return None;
    }
    let (key, value) = NAMES.into_iter().find(|(key, value)| names.contains(key) && names.contains(value))?;
    let format_fields = [key, value, "type"];
    let has_others = names.iter().any(|name| !format_fields.contains(name));
    if has_others && !drops_fields {
        return None;
    }
    let (keys, values) = (headers.column_by_name(key)?, headers.column_by_name(value)?);
    if !has_others && key == "key" && is_text(keys.data_type()) && is_binary(values.data_type()) {
        return None;
    }
    let is_of_headers = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => is_text(values) || is_binary(values),
        data_type => is_text(data_type) || is_binary(data_type),
    };
    if !is_of_headers(keys.data_type()) || !is_of_headers(values.data_type()) {
        return None;
    }
    let types = headers.column_by_name("type").filter(|types| is_text(types.data_type()));
    Some((|| {
        let has_binary_keys = match keys.data_type() {
            DataType::Dictionary(_, data_type) => is_binary(data_type),
            data_type => is_binary(data_type),
        };
        let reason = reason_of(headers).or(has_binary_keys.then_some(NOT_TEXT));
        let mut named = vec![("key", text_of(keys)?), ("value", bytes_of(values)?)];
        if let Some(types) = types {
            named.insert(1, ("type", Arc::clone(types)));
        }
        struct_with(named, headers.nulls(), reason)
    })())
}

fn struct_with(
    columns: Vec<(&str, ArrayRef)>,
    nulls: Option<&NullBuffer>,
    reason: Option<&'static str>,
) -> Result<StructArray, Error> {
    let field = |(name, column): &(&str, ArrayRef)| {
        let field = Field::new(*name, column.data_type().clone(), true);
        match reason {
            Some(reason) if *name == "key" => {
                field.with_metadata(HashMap::from([(REASON.to_owned(), reason.to_owned())]))
            }
            _ => field,
        }
    };
    let fields = columns.iter().map(field).collect::<Fields>();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    StructArray::try_new(fields, columns, nulls.cloned()).map_err(malformed)
}

/// Metadata key for the reason why a key of a converted column may be null.
const REASON: &str = "letterhead: null key";

const NOT_TEXT: &str = "the key is null, or not UTF-8";
const NO_VALUE: &str = "the key is null, or has no value after it";

/// Returns the reason why a key of a converted column may be null, apart from nulls in the input.
pub fn why_null(field: &Field) -> Option<&'static str> {
    let reason = field.metadata().get(REASON)?;
    [NOT_TEXT, NO_VALUE].into_iter().find(|known| known == reason)
}

fn reason_of(headers: &StructArray) -> Option<&'static str> {
    headers.fields().iter().find_map(|field| why_null(field))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Converts keys to text; a key that is not UTF-8 becomes null.
fn text_of(keys: &ArrayRef) -> Result<ArrayRef, Error> {
    Ok(match keys.data_type() {
        DataType::Dictionary(..) => return text_of(&expand_dictionary(keys)?),
        DataType::Binary => {
            let keys = keys.as_binary::<i32>();
            Arc::new(StringArray::try_from_binary(keys.clone()).unwrap_or_else(|_| keys.iter().map(text).collect()))
        }
        DataType::LargeBinary => {
            let keys = keys.as_binary::<i64>();
            Arc::new(
                LargeStringArray::try_from_binary(keys.clone()).unwrap_or_else(|_| keys.iter().map(text).collect()),
            )
        }
        DataType::BinaryView => {
            let keys = keys.as_binary_view();
            Arc::new(keys.clone().to_string_view().unwrap_or_else(|_| keys.iter().map(text).collect()))
        }
        _ => Arc::clone(keys),
    })
}

fn text(key: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(key?).ok()
}

/// Converts values to bytes; text becomes UTF-8.
fn bytes_of(values: &ArrayRef) -> Result<ArrayRef, Error> {
    match values.data_type() {
        DataType::Dictionary(..) => bytes_of(&expand_dictionary(values)?),
        _ => Ok(bytes_of_text(values).unwrap_or_else(|| Arc::clone(values))),
    }
}

/// The bytes of a text column, in the same buffers; `None` for any other column.
pub fn bytes_of_text(column: &dyn Array) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::Utf8 => Some(Arc::new(BinaryArray::from(column.as_string::<i32>().clone()))),
        DataType::LargeUtf8 => Some(Arc::new(LargeBinaryArray::from(column.as_string::<i64>().clone()))),
        DataType::Utf8View => Some(Arc::new(column.as_string_view().clone().to_binary_view())),
        _ => None,
    }
}

/// Expands a dictionary.
fn expand_dictionary(column: &ArrayRef) -> Result<ArrayRef, Error> {
    let dictionary = column.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), column.len()));
    }
    let keys = dictionary.normalized_keys();
    let mut rows = memory::vec_of(column.len());
    rows.extend((0..column.len()).map(|row| dictionary.keys().is_valid(row).then(|| keys[row])));
    pick_values(values, &rows)
}

/// Copies single values of a column, or a null for each row without one.
fn pick_values(values: &ArrayRef, rows: &[Option<usize>]) -> Result<ArrayRef, Error> {
    match values.data_type() {
        DataType::Utf8 => picked_bytes(values.as_string::<i32>(), rows),
        DataType::Binary => picked_bytes(values.as_binary::<i32>(), rows),
        _ => {
            let mut ranges = memory::vec_of(rows.len());
            ranges.extend(rows.iter().map(|row| row.map(|row| (row, 1))));
            taken(&values.to_data(), &ranges)
        }
    }
}

fn picked_bytes<T: ByteArrayType<Offset = i32>>(
    values: &GenericByteArray<T>,
    rows: &[Option<usize>],
) -> Result<ArrayRef, Error> {
    let valid = rows.iter().map(|row| row.filter(|row| values.is_valid(*row)));
    let lengths = valid.clone().flatten().map(|row| values.value_length(row) as usize);
    let bytes = lengths.fold(0, usize::saturating_add);
    if bytes > MAX_ELEMENTS {
        return Err(too_large());
    }
    let mut builder = GenericByteBuilder::<T>::with_capacity(rows.len(), bytes);
    valid.for_each(|row| builder.append_option(row.map(|row| values.value(row))));
    Ok(Arc::new(builder.finish()))
}

fn too_large() -> Error {
    Error::Value(
        "the column is a dictionary or a list view of more than 2 GiB: pass a stream of smaller batches".into(),
    )
}

/// Copies ranges of a column, or a null for each row without one.
fn taken(values: &ArrayData, rows: &[Option<(usize, usize)>]) -> Result<ArrayRef, Error> {
    let (mut elements, mut bytes) = (0usize, 0usize);
    for (start, len) in rows.iter().flatten() {
        elements = elements.saturating_add(*len);
        bytes = bytes.saturating_add(byte_len(values, *start, *len));
    }
    if elements.max(bytes) > MAX_ELEMENTS {
        return Err(too_large());
    }
    let mut copy = MutableArrayData::new(vec![values], true, elements);
    // Adjacent ranges are copied at once.
    let mut pending = 0..0;
    for row in rows {
        match *row {
            Some((start, len)) if start == pending.end => pending.end += len,
            Some((start, len)) => {
                let range = std::mem::replace(&mut pending, start..start + len);
                copy.try_extend(0, range.start, range.end).map_err(malformed)?;
            }
            None => {
                let range = std::mem::replace(&mut pending, 0..0);
                copy.try_extend(0, range.start, range.end).map_err(malformed)?;
                copy.try_extend_nulls(1).map_err(malformed)?;
            }
        }
    }
    copy.try_extend(0, pending.start, pending.end).map_err(malformed)?;
    Ok(make_array(copy.freeze()))
}

/// Number of bytes that are copied with a range of values.
fn byte_len(values: &ArrayData, start: usize, len: usize) -> usize {
    fn span<O: ArrowNativeType>(values: &ArrayData, start: usize, len: usize) -> (usize, usize) {
        let offsets = &values.buffers()[0].typed_data::<O>()[values.offset()..];
        let (start, end) = (offsets[start].as_usize(), offsets[start + len].as_usize());
        (start, end - start)
    }
    match values.data_type() {
        DataType::Utf8 | DataType::Binary => span::<i32>(values, start, len).1,
        DataType::LargeUtf8 | DataType::LargeBinary => span::<i64>(values, start, len).1,
        DataType::List(_) | DataType::Map(..) => {
            let (first, count) = span::<i32>(values, start, len);
            count.saturating_add(byte_len(&values.child_data()[0], first, count))
        }
        DataType::LargeList(_) => {
            let (first, count) = span::<i64>(values, start, len);
            count.saturating_add(byte_len(&values.child_data()[0], first, count))
        }
        DataType::Struct(_) => {
            let parts = values.child_data().iter().map(|child| byte_len(child, values.offset() + start, len));
            parts.fold(len, usize::saturating_add)
        }
        _ => len,
    }
}

/// Converts list views to lists.
fn from_views<O: OffsetSizeTrait>(views: &GenericListViewArray<O>) -> Result<ArrayRef, Error> {
    let range = |row| match views.is_valid(row) {
        true => (views.value_offset(row).as_usize(), views.value_size(row).as_usize()),
        false => (0, 0),
    };
    let mut ranges = memory::vec_of(views.len());
    ranges.extend((0..views.len()).map(|row| Some(range(row))));
    let lengths = ranges.iter().flatten().map(|(_, len)| *len);
    // `taken` rejects more elements than 32-bit offsets can count, for which `from_lengths` would panic.
    let elements = taken(&views.values().to_data(), &ranges)?;
    list_of(OffsetBuffer::<i32>::from_lengths(lengths), elements, views.nulls())
}

fn from_fixed(lists: &FixedSizeListArray) -> Result<ArrayRef, Error> {
    let size = lists.value_length() as usize;
    let Some(last) = i32::try_from(lists.len().saturating_mul(size)).ok() else {
        return Err(Error::Value("the lists of the column have more than 2^31 headers: pass a stream".into()));
    };
    let first = lists.value_offset_at(0);
    let elements = lists.values().slice(first, last as usize);
    list_of(OffsetBuffer::<i32>::from_repeated_length(size, lists.len()), elements, lists.nulls())
}

/// Converts lists of alternating keys and values to lists of headers.
fn from_alternating<O: OffsetSizeTrait>(lists: &GenericListArray<O>, drops_fields: bool) -> Result<ArrayRef, Error> {
    let offsets = lists.value_offsets();
    let (mut ends, mut keys, mut values) = (vec![0i32], Vec::new(), Vec::new());
    for row in 0..lists.len() {
        let (start, end) = (offsets[row].as_usize(), offsets[row + 1].as_usize());
        if lists.is_valid(row) {
            for index in (start..end).step_by(2) {
                // A key without a value becomes an error of its row.
                let has_value = index + 1 < end;
                memory::push(&mut keys, has_value.then_some(index));
                memory::push(&mut values, has_value.then_some(index + 1));
            }
        }
        ends.push(i32::try_from(keys.len()).map_err(|_| too_large())?);
    }
    let columns = [("key", keys), ("value", values)];
    let picked = columns.into_iter().map(|(name, rows)| Ok((name, pick_values(lists.values(), &rows)?)));
    let headers = struct_with(picked.collect::<Result<_, Error>>()?, None, Some(NO_VALUE))?;
    list(OffsetBuffer::new(ScalarBuffer::from(ends)), Arc::new(headers), lists.nulls(), drops_fields)
}
