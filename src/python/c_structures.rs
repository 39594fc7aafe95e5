//! Checks of the structures of Arrow's C data interface, before `arrow-data` reads them: it takes the numbers in them for
//! granted, and panics or reads beyond a buffer where they are wrong.

use std::ffi::{CStr, c_char};
use std::slice;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_data::layout;
use arrow_schema::DataType;

/// The most types inside each other.
const MAX_DEPTH: usize = 64;

/// The most rows, so that no size in bytes overflows.
const MAX_ROWS: i64 = 1 << 56;

type Checked<T = ()> = Result<T, String>;

fn malformed<T>(what: &str) -> Checked<T> {
    Err(format!("the Arrow structure is malformed: {what}"))
}

/// Checks the names, formats and children of a schema.
///
/// # Safety
///
/// Pointers are null or point to what the interface says: texts that end with a zero byte, and as many children as there are
/// said to be.
pub unsafe fn check_schema(schema: &FFI_ArrowSchema) -> Checked {
    // SAFETY: the caller's promise.
    unsafe { check_type(schema, 0) }
}

/// # Safety
///
/// As for `check_schema`.
unsafe fn check_type(schema: &FFI_ArrowSchema, depth: usize) -> Checked {
    if depth > MAX_DEPTH {
        return malformed("types are inside each other too deeply");
    }
    if schema.release.is_none() {
        return malformed("a schema is released");
    }
    if schema.format.is_null() {
        return malformed("a schema has no format");
    }
    // SAFETY: the caller's promise.
    unsafe {
        let children = children(schema.children, schema.n_children)?;
        check_text(schema.format, "the format of a type is not UTF-8")?;
        check_text(schema.name, "the name of a field is not UTF-8")?;
        check_format(CStr::from_ptr(schema.format).to_bytes(), children.len())?;
        for child in children {
            check_type(child, depth + 1)?;
        }
        schema.dictionary.as_ref().map_or(Ok(()), |dictionary| check_type(dictionary, depth + 1))
    }
}

/// Checks the size of types that have one, and the number of children of those that have a fixed one.
fn check_format(format: &[u8], count: usize) -> Checked {
    let expected = match format {
        b"+l" | b"+L" | b"+vl" | b"+vL" | b"+m" => 1,
        b"+r" => 2,
        [b'w', b':', b'-', ..] | [b'+', b'w', b':', b'-', ..] => return malformed("a size is negative"),
        [b'+', b'w', ..] => 1,
        _ => return Ok(()),
    };
    if count == expected { Ok(()) } else { malformed("a type has another number of children") }
}

/// # Safety
///
/// The pointer is null or points to a text that ends with a zero byte.
unsafe fn check_text(text: *const c_char, otherwise: &str) -> Checked {
    // SAFETY: not null, and the caller's promise.
    match text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok() {
        true => Ok(()),
        false => malformed(otherwise),
    }
}

/// The structures that an array of pointers points to.
///
/// # Safety
///
/// The pointer is null or points to so many pointers, each null or to a structure.
unsafe fn children<'a, T>(pointers: *mut *mut T, count: i64) -> Checked<Vec<&'a T>> {
    let Ok(count) = usize::try_from(count) else { return malformed("a number of children is negative") };
    if count > 0 && pointers.is_null() {
        return malformed("there are no children, and their number says that there are");
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: not null, and the caller's promise.
    let children = unsafe { slice::from_raw_parts(pointers, count).iter().map(|pointer| pointer.as_ref()) };
    children.collect::<Option<_>>().map_or_else(|| malformed("a child is null"), Ok)
}

/// Checks the numbers of an array, its buffers and its children against its type.
///
/// # Safety
///
/// Pointers are null or point to what the interface says: as many buffers and children as it states, and offsets and
/// lengths of buffers for the rows.
pub unsafe fn check_array(array: &FFI_ArrowArray, of: &DataType) -> Checked {
    let Some(rows) = rows(array) else { return malformed("a length, an offset or a number of nulls is out of range") };
    let layout = layout(of);
    let has_nulls = usize::from(layout.can_contain_null_mask);
    let expected = layout.buffers.len() + has_nulls;
    let count = usize::try_from(array.n_buffers).unwrap_or(usize::MAX);
    // Views have more buffers, and one with the lengths of these.
    let is_right = if layout.variadic { (expected + 1..=1 << 31).contains(&count) } else { count == expected };
    if !is_right {
        return malformed("a type has another number of buffers");
    }
    if count > 0 && array.buffers.is_null() {
        return malformed("there are no buffers, and their number says that there are");
    }
    // SAFETY: not null unless there are none, and the caller's promise.
    let buffers = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(array.buffers, count) } };
    if has_nulls == 1 && buffers[0].is_null() && array.null_count > 0 {
        return malformed("there are nulls and no buffer of them");
    }
    if rows > 0 && buffers[has_nulls..expected.min(count)].iter().take(1).any(|buffer| buffer.is_null()) {
        return malformed("a buffer is null");
    }
    if rows > 0 {
        // SAFETY: the first buffer after the nulls is not null and has an offset for each row and one more.
        let last = unsafe {
            match of {
                DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..) => {
                    buffers[1].cast::<i32>().add(rows).read_unaligned().into()
                }
                DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_) => {
                    buffers[1].cast::<i64>().add(rows).read_unaligned()
                }
                _ => 0,
            }
        };
        if last < 0 {
            return malformed("an offset is negative");
        }
    }
    if layout.variadic && count > expected + 1 {
        let (data, lengths) = (&buffers[expected..count - 1], buffers[count - 1].cast::<i64>());
        if lengths.is_null() {
            return malformed("the lengths of buffers are missing");
        }
        for (place, buffer) in data.iter().enumerate() {
            // SAFETY: not null, and the caller's promise: a length for each of these buffers.
            let len = unsafe { lengths.add(place).read_unaligned() };
            if !(0..=MAX_ROWS).contains(&len) || (len > 0 && buffer.is_null()) {
                return malformed("the length of a buffer is out of range");
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { check_children(array, rows, of) }
}

/// The rows of an array and those before its first.
fn rows(array: &FFI_ArrowArray) -> Option<usize> {
    let FFI_ArrowArray { length, null_count, offset, .. } = *array;
    let is_right = (0..=MAX_ROWS).contains(&length) && (0..=MAX_ROWS).contains(&offset);
    (is_right && (-1..=length).contains(&null_count)).then(|| (length + offset) as usize)
}

/// # Safety
///
/// As for `check_array`.
unsafe fn check_children(array: &FFI_ArrowArray, rows: usize, of: &DataType) -> Checked {
    // SAFETY: the caller's promise.
    let children = unsafe { children(array.children, array.n_children) }?;
    let (types, least): (Vec<&DataType>, usize) = match of {
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => (vec![field.data_type()], 0),
        DataType::ListView(field) | DataType::LargeListView(field) => (vec![field.data_type()], 0),
        DataType::FixedSizeList(field, size) => {
            let Ok(size) = usize::try_from(*size) else { return malformed("a size is negative") };
            (vec![field.data_type()], rows.saturating_mul(size))
        }
        DataType::Struct(fields) => (fields.iter().map(|field| field.data_type()).collect(), rows),
        DataType::Union(fields, _) => (fields.iter().map(|(_, field)| field.data_type()).collect(), 0),
        DataType::RunEndEncoded(ends, values) => (vec![ends.data_type(), values.data_type()], 0),
        _ => (Vec::new(), 0),
    };
    if children.len() != types.len() {
        return malformed("a type has another number of children");
    }
    for (child, of) in children.into_iter().zip(types) {
        if usize::try_from(child.length).is_ok_and(|len| len < least) {
            return malformed("a child has fewer rows than its parent");
        }
        // SAFETY: the caller's promise.
        unsafe { check_array(child, of) }?;
    }
    match of {
        // SAFETY: the caller's promise.
        DataType::Dictionary(_, values) => unsafe {
            let dictionary = array.dictionary.as_ref();
            dictionary.map_or_else(|| malformed("there is no dictionary"), |dictionary| check_array(dictionary, values))
        },
        _ => Ok(()),
    }
}
