//! Import of the structures of Arrow's C data interface: [`import_type`] and [`import_array`].
//!
//! Numbers, pointers and offsets are checked before they are used, and buffers that are not aligned are copied. The
//! import of `arrow-array` trusts all of these. Only the lengths that a producer states cannot be checked.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use arrow_array::OffsetSizeTrait;
use arrow_buffer::Buffer;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_data::{ArrayData, BufferSpec, layout};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, UnionMode};

use super::checks::check_values;
use crate::memory;
use crate::number::position;

/// Maximum depth of nested types.
const MAX_DEPTH: usize = 64;

/// Maximum number of nested types. A structure that is the child of several others counts each time, so that a few
/// structures cannot form an endless type.
const MAX_TYPES: usize = 1 << 20;

/// Maximum number of rows, whose sums and products do not overflow.
const MAX_ROWS: i64 = if cfg!(target_pointer_width = "64") { 1 << 56 } else { 1 << 29 };

type Checked<T = ()> = Result<T, String>;

/// First fields of the interface's `ArrowSchema`. The fields of `FFI_ArrowSchema` are private, and its methods trust
/// them.
#[repr(C)]
struct SchemaFields {
    format: *const c_char,
    name: *const c_char,
    _metadata: *const c_char,
    _flags: i64,
    n_children: i64,
    children: *const *const FFI_ArrowSchema,
    dictionary: *const FFI_ArrowSchema,
}

/// First fields of the interface's `ArrowArray`.
#[repr(C)]
struct ArrayFields {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const FFI_ArrowArray,
    dictionary: *const FFI_ArrowArray,
}

impl SchemaFields {
    fn new(schema: &FFI_ArrowSchema) -> &Self {
        // SAFETY: both have the layout that the interface defines, and every value of these fields is valid.
        unsafe { &*std::ptr::from_ref(schema).cast() }
    }
}

impl ArrayFields {
    fn new(array: &FFI_ArrowArray) -> &Self {
        // SAFETY: as for schemas.
        unsafe { &*std::ptr::from_ref(array).cast() }
    }
}

fn malformed<T>(reason: &str) -> Checked<T> {
    Err(format!("the Arrow structure is malformed: {reason}"))
}

/// Checks the names, formats and children of a schema, and returns its type.
///
/// # Safety
///
/// Pointers are null or valid as the interface defines: to texts that end with a zero byte, to the stated number of
/// children, and to metadata of the length that it states.
pub unsafe fn import_type(schema: &FFI_ArrowSchema) -> Checked<DataType> {
    // SAFETY: the caller's contract.
    unsafe { check_type(schema, 0, &mut 0) }?;
    DataType::try_from(schema).map_err(|error| match error {
        ArrowError::CDataInterface(text) => text,
        other => other.to_string(),
    })
}

/// # Safety
///
/// As for `import_type`.
unsafe fn check_type(schema: &FFI_ArrowSchema, depth: usize, types: &mut usize) -> Checked {
    *types += 1;
    if depth > MAX_DEPTH || *types > MAX_TYPES {
        return malformed("types are inside each other too deeply, or too many");
    }
    if schema.release().is_none() {
        return malformed("a schema is released");
    }
    let schema = SchemaFields::new(schema);
    if schema.format.is_null() {
        return malformed("a schema has no format");
    }
    // SAFETY: the caller's contract.
    unsafe {
        let children = children(schema.children, schema.n_children)?;
        check_text(schema.format, "the format of a type is not UTF-8")?;
        check_text(schema.name, "the name of a field is not UTF-8")?;
        for child in &children {
            check_type(child, depth + 1, types)?;
        }
        // The formats of children are not null, as checked above.
        let types_of_children: Vec<_> = children.iter().map(|child| ChildType::of(SchemaFields::new(child))).collect();
        check_children(CStr::from_ptr(schema.format).to_bytes(), &types_of_children)?;
        let Some(dictionary) = schema.dictionary.as_ref() else { return Ok(()) };
        if !matches!(CStr::from_ptr(schema.format).to_bytes(), [b'c' | b'C' | b's' | b'S' | b'i' | b'I' | b'l' | b'L'])
        {
            return malformed("the indices of a dictionary are not integers");
        }
        check_type(dictionary, depth + 1, types)
    }
}

/// The part of a child's type that its parent may determine.
struct ChildType<'a> {
    /// Format of the child; `None` for a dictionary, whose format describes its indices.
    format: Option<&'a [u8]>,
    children: i64,
}

impl<'a> ChildType<'a> {
    /// # Safety
    ///
    /// The format points to a text that ends with a zero byte.
    unsafe fn of(schema: &'a SchemaFields) -> Self {
        // SAFETY: the caller's contract.
        let format = unsafe { CStr::from_ptr(schema.format).to_bytes() };
        ChildType { format: schema.dictionary.is_null().then_some(format), children: schema.n_children }
    }
}

/// Checks the size of a type, and the number and types of its children, if the format determines them.
fn check_children(format: &[u8], children: &[ChildType<'_>]) -> Checked {
    let expected = match format {
        b"+l" | b"+L" | b"+vl" | b"+vL" | b"+m" => 1,
        b"+r" => 2,
        [b'w', b':', b'-', ..] | [b'+', b'w', b':', b'-', ..] => return malformed("a size is negative"),
        [b'+', b'w', ..] => 1,
        [b'+', ..] => children.len(),
        _ => 0,
    };
    if children.len() != expected {
        return malformed("a type has another number of children");
    }
    match (format, children) {
        (b"+m", [entries]) if entries.format != Some(b"+s") || entries.children != 2 => {
            malformed("the child of a map is not a structure of a key and a value")
        }
        (b"+r", [ends, _]) if !matches!(ends.format, Some(b"s" | b"i" | b"l")) => {
            malformed("the ends of runs are not integers of 16, 32 or 64 bits")
        }
        _ => Ok(()),
    }
}

/// # Safety
///
/// The pointer is null or points to a text that ends with a zero byte.
unsafe fn check_text(text: *const c_char, otherwise: &str) -> Checked {
    // SAFETY: not null, and the caller's contract.
    match text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok() {
        true => Ok(()),
        false => malformed(otherwise),
    }
}

/// Reads the structures to which an array of pointers points.
///
/// # Safety
///
/// The pointer is null or points to this many pointers, each of which is null or points to a structure.
unsafe fn children<'a, T>(pointers: *const *const T, count: i64) -> Checked<Vec<&'a T>> {
    let Ok(count) = usize::try_from(count) else { return malformed("a number of children is negative") };
    if count > 0 && pointers.is_null() {
        return malformed("there are no children, and their number says that there are");
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: not null, and the caller's contract.
    let children = unsafe { slice::from_raw_parts(pointers, count).iter().map(|pointer| pointer.as_ref()) };
    children.collect::<Option<_>>().map_or_else(|| malformed("a child is null"), Ok)
}

/// Imports an array of another library, and validates everything except the lengths of buffers.
///
/// # Safety
///
/// Pointers are null or valid as the interface defines, to the stated numbers of buffers and children. Each buffer has
/// the length that its rows, its last offset, or the stated length of a buffer of views requires. All stay valid until
/// the array is released.
pub unsafe fn import_array(array: FFI_ArrowArray, data_type: &DataType) -> Checked<ArrayData> {
    let owner = Arc::new(array);
    // SAFETY: the caller's contract.
    let data = unsafe { import(&owner, data_type, &owner) }?;
    check_values(&data)?;
    Ok(without_unused_elements(data))
}

/// Removes list elements that no row uses: `check_values` skips them, and some conversions read all elements.
fn without_unused_elements(data: ArrayData) -> ArrayData {
    match data.data_type() {
        DataType::List(_) | DataType::Map(..) => with_used_elements::<i32>(data),
        DataType::LargeList(_) => with_used_elements::<i64>(data),
        DataType::Struct(_) => {
            let data = data.slice(0, data.len());
            let children = data.child_data().iter().cloned().map(without_unused_elements).collect();
            // SAFETY: as before, each child has the type of its field and a value for each row.
            unsafe { data.into_builder().child_data(children).build_unchecked() }
        }
        _ => data,
    }
}

/// Removes the elements before the first list and after the last one.
fn with_used_elements<O: OffsetSizeTrait>(data: ArrayData) -> ArrayData {
    let (buffer, elements) = (&data.buffers()[0], &data.child_data()[0]);
    let offsets = &buffer.typed_data::<O>()[data.offset()..=data.offset() + data.len()];
    let (first, last) = (offsets[0].as_usize(), offsets[data.len()].as_usize());
    let elements = match first < last {
        true => without_unused_elements(elements.slice(first, last - first)),
        false => ArrayData::new_empty(elements.data_type()),
    };
    let (offset, buffer) = match first {
        0 => (data.offset(), buffer.clone()),
        _ => {
            let mut moved = memory::vec_of(offsets.len());
            moved.extend(offsets.iter().map(|offset| *offset - offsets[0]));
            (0, Buffer::from_vec(moved))
        }
    };
    // SAFETY: `check_values` verified that offsets do not decrease or exceed the elements. There are as many offsets as
    // before, and the last one equals the number of remaining elements.
    unsafe { data.into_builder().offset(offset).buffers(vec![buffer]).child_data(vec![elements]).build_unchecked() }
}

/// Imports an array without a check of its values.
///
/// # Safety
///
/// As for `import_array`. The owner releases the array.
unsafe fn import(array: &FFI_ArrowArray, data_type: &DataType, owner: &Arc<FFI_ArrowArray>) -> Checked<ArrayData> {
    let ArrayFields { length, null_count, offset, .. } = *ArrayFields::new(array);
    let is_right = (0..=MAX_ROWS).contains(&length) && (0..=MAX_ROWS).contains(&offset);
    if !is_right || !(-1..=length).contains(&null_count) {
        return malformed("a length, an offset or a number of nulls is out of range");
    }
    let (len, offset) = (position(length), position(offset));
    // SAFETY: the caller's contract.
    let (nulls, pointers, lengths) = unsafe { buffers(array, data_type) }?;
    // SAFETY: as above.
    let children = unsafe { import_children(array, len + offset, data_type, owner) }?;
    if len == 0 {
        // An array without rows may have null buffers, even for its one offset.
        return Ok(ArrayData::new_empty(data_type));
    }
    // SAFETY: a bit for each row.
    let nulls = unsafe { buffer(nulls, (len + offset).div_ceil(8), 1, owner) };
    let mut data = Vec::new();
    for (pointer, spec) in pointers.iter().zip(layout(data_type).buffers) {
        let (size, alignment) = size(data_type, spec, len + offset, &data)?;
        // SAFETY: the caller's contract: the buffer has the size that follows from the rows and the last offset.
        match unsafe { buffer(*pointer, size, alignment, owner) } {
            None if size > 0 => return malformed("a buffer is null"),
            buffer => data.push(buffer.unwrap_or_default()),
        }
    }
    for (pointer, size) in pointers[data.len()..].iter().zip(lengths) {
        // SAFETY: the caller's contract: the buffer has the length that the producer states.
        match unsafe { buffer(*pointer, size, 1, owner) } {
            None if size > 0 => return malformed("the length of a buffer is out of range"),
            buffer => data.push(buffer.unwrap_or_default()),
        }
    }
    // SAFETY: there are as many buffers and children as the type has, with a value for each row, and the nulls are
    // counted. `import_array` checks offsets, views and text before anything else reads the data.
    Ok(unsafe { ArrayData::new_unchecked(data_type.clone(), len, None, nulls, offset, data, children) })
}

/// Returns the pointers to the validity and to other buffers, and the lengths of the data buffers of views.
///
/// # Safety
///
/// As for `import_array`.
unsafe fn buffers<'a>(
    array: &'a FFI_ArrowArray,
    data_type: &DataType,
) -> Checked<(*const c_void, &'a [*const c_void], Vec<usize>)> {
    let layout = layout(data_type);
    let has_nulls = usize::from(layout.can_contain_null_mask);
    let expected = layout.buffers.len() + has_nulls;
    let array = ArrayFields::new(array);
    let count = usize::try_from(array.n_buffers).unwrap_or(usize::MAX);
    // Views have additional data buffers, and one buffer with the lengths of these.
    let is_right = if layout.variadic { (expected + 1..=1 << 31).contains(&count) } else { count == expected };
    if !is_right {
        return malformed("a type has another number of buffers");
    }
    if count > 0 && array.buffers.is_null() {
        return malformed("there are no buffers, and their number says that there are");
    }
    // SAFETY: not null unless there are none, and the caller's contract.
    let all = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(array.buffers, count) } };
    let nulls = if has_nulls == 1 { all[0] } else { std::ptr::null() };
    if has_nulls == 1 && nulls.is_null() && array.null_count > 0 {
        return malformed("there are nulls and no buffer of them");
    }
    if !layout.variadic || count == expected + 1 {
        return Ok((nulls, &all[has_nulls..expected], Vec::new()));
    }
    let stated = all[count - 1].cast::<i64>();
    if stated.is_null() {
        return malformed("the lengths of buffers are missing");
    }
    let length = |index| {
        // SAFETY: not null, and the caller's contract: a length for each of these buffers.
        let length = unsafe { stated.add(index).read_unaligned() };
        if (0..=MAX_ROWS).contains(&length) { Some(position(length)) } else { None }
    };
    let lengths = (0..count - 1 - expected).map(length).collect::<Option<_>>();
    let Some(lengths) = lengths else { return malformed("the length of a buffer is out of range") };
    Ok((nulls, &all[has_nulls..count - 1], lengths))
}

/// Number of bytes of a buffer, given the previous buffers, and its alignment in Rust.
fn size(data_type: &DataType, spec: BufferSpec, rows: usize, before: &[Buffer]) -> Checked<(usize, usize)> {
    use DataType as D;
    let out_of_range = || malformed("a size is out of range");
    match spec {
        BufferSpec::FixedWidth { byte_width, alignment } => {
            let has_end = matches!(
                data_type,
                D::Utf8 | D::Binary | D::List(_) | D::Map(..) | D::LargeUtf8 | D::LargeBinary | D::LargeList(_)
            );
            let size = byte_width.checked_mul(rows + usize::from(has_end)).filter(|size| *size <= isize::MAX as usize);
            size.map_or_else(out_of_range, |size| Ok((size, alignment)))
        }
        BufferSpec::VariableWidth => {
            let last = match data_type {
                D::LargeUtf8 | D::LargeBinary => before[0].typed_data::<i64>()[rows],
                _ => before[0].typed_data::<i32>()[rows].into(),
            };
            if last < 0 {
                return malformed("an offset is negative");
            }
            let size = usize::try_from(last).ok().filter(|size| *size <= isize::MAX as usize);
            size.map_or_else(out_of_range, |size| Ok((size, 1)))
        }
        BufferSpec::BitMap => Ok((rows.div_ceil(8), 1)),
        BufferSpec::AlwaysNull => Ok((0, 1)),
    }
}

/// Imports a buffer of another library, or copies it if it is not aligned; `None` if it is null.
///
/// # Safety
///
/// `size` bytes, at most `isize::MAX`, are readable until the owner releases the array.
unsafe fn buffer(pointer: *const c_void, size: usize, alignment: usize, owner: &Arc<FFI_ArrowArray>) -> Option<Buffer> {
    let pointer = NonNull::new(pointer.cast_mut().cast::<u8>())?;
    if size == 0 {
        // The pointer of an empty buffer may be invalid.
        return Some(Buffer::default());
    }
    if !pointer.as_ptr().addr().is_multiple_of(alignment) {
        memory::probe(size);
        // SAFETY: the caller's contract.
        return Some(Buffer::from(unsafe { slice::from_raw_parts(pointer.as_ptr(), size) }));
    }
    // SAFETY: the caller's contract, and the buffer keeps the owner.
    Some(unsafe { Buffer::from_custom_allocation(pointer, size, Arc::<FFI_ArrowArray>::clone(owner)) })
}

/// Imports the children of an array, or its dictionary.
///
/// # Safety
///
/// As for `import`.
unsafe fn import_children(
    array: &FFI_ArrowArray,
    rows: usize,
    data_type: &DataType,
    owner: &Arc<FFI_ArrowArray>,
) -> Checked<Vec<ArrayData>> {
    let array = ArrayFields::new(array);
    if let DataType::Dictionary(_, values) = data_type {
        // SAFETY: the caller's contract.
        let dictionary = unsafe { array.dictionary.as_ref() };
        let Some(dictionary) = dictionary else { return malformed("there is no dictionary") };
        // SAFETY: as above.
        return Ok(vec![unsafe { import(dictionary, values, owner) }?]);
    }
    // SAFETY: the caller's contract.
    let children = unsafe { children(array.children, array.n_children) }?;
    let (types, min_rows): (Vec<&DataType>, usize) = match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => (vec![field.data_type()], 0),
        DataType::ListView(field) | DataType::LargeListView(field) => (vec![field.data_type()], 0),
        DataType::FixedSizeList(field, size) => {
            let Ok(size) = usize::try_from(*size) else { return malformed("a size is negative") };
            (vec![field.data_type()], rows.saturating_mul(size))
        }
        DataType::Struct(fields) => (fields.iter().map(|field| field.data_type()).collect(), rows),
        DataType::Union(fields, mode) => {
            let min_rows = if *mode == UnionMode::Sparse { rows } else { 0 };
            (fields.iter().map(|(_, field)| field.data_type()).collect(), min_rows)
        }
        DataType::RunEndEncoded(ends, values) => (vec![ends.data_type(), values.data_type()], 0),
        _ => (Vec::new(), 0),
    };
    if children.len() != types.len() {
        return malformed("a type has another number of children");
    }
    let import_child = |(child, data_type): (&FFI_ArrowArray, &DataType)| {
        // SAFETY: the caller's contract.
        let child = unsafe { import(child, data_type, owner) }?;
        if child.len() < min_rows { malformed("a child has fewer rows than its parent") } else { Ok(child) }
    };
    children.into_iter().zip(types).map(import_child).collect()
}

#[cfg(test)]
#[path = "../../tests/rust/units/c_structures.rs"]
mod tests;
