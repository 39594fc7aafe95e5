//! Arrays of the C data interface that another library may export: unaligned buffers, and null buffers without rows.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::*;

use super::*;

/// Exports an array with buffers that begin one byte after an aligned address. `moved` owns the memory of the buffers.
fn misaligned(array: &dyn Array, moved: &mut Vec<Vec<u128>>) -> FFI_ArrowArray {
    let data = array.to_data();
    let exported = FFI_ArrowArray::new(&data);
    let has_nulls = usize::from(layout(data.data_type()).can_contain_null_mask);
    for (index, buffer) in data.buffers().iter().enumerate() {
        let mut memory = vec![0u128; buffer.len() / 16 + 2];
        let start = memory.as_mut_ptr().cast::<u8>().wrapping_add(1);
        moved.push(memory);
        // SAFETY: the memory has two numbers more than the buffer, and the structure has a pointer for each buffer.
        unsafe {
            start.copy_from_nonoverlapping(buffer.as_ptr(), buffer.len());
            ArrayFields::new(&exported).buffers.cast_mut().add(has_nulls + index).write(start.cast());
        }
    }
    exported
}

fn imported(array: FFI_ArrowArray, of: &DataType) -> Checked<ArrayRef> {
    // SAFETY: the structure was exported from an array, and possibly changed as a test describes.
    unsafe { import_array(array, of) }.map(make_array)
}

#[test]
#[cfg_attr(target_endian = "big", ignore = "arrow-array reads short views as little-endian memory")]
fn buffers_at_odd_addresses_are_copied() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    lists.append_null();
    let bytes: &[Option<&[u8]>] = &[Some(b"tenant"), None, Some(b""), Some(b"longer than twelve bytes")];
    let arrays: [ArrayRef; 9] = [
        Arc::new(BinaryArray::from_iter(bytes)),
        Arc::new(LargeBinaryArray::from_iter(bytes)),
        Arc::new(BinaryViewArray::from_iter(bytes)),
        Arc::new(StringViewArray::from(vec!["a", "longer than twelve bytes"])),
        Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MIN)])),
        Arc::new(Decimal128Array::from(vec![1, -1])),
        Arc::new(BooleanArray::from(vec![true, false, true])),
        Arc::new(lists.finish()),
        Arc::new(Int64Array::from_iter_values(0..9).slice(3, 4)),
    ];
    for array in arrays {
        let mut moved = Vec::new();
        let found = imported(misaligned(&array, &mut moved), array.data_type()).expect("a right array");
        assert_eq!(&found, &array);
    }
}

#[test]
fn buffers_at_right_addresses_are_not_copied() {
    let array = BinaryArray::from_iter_values([b"a".as_slice(), b"bc"]);
    let found = imported(FFI_ArrowArray::new(&array.to_data()), array.data_type()).expect("a right array");
    let addresses = |data: ArrayData| data.buffers().iter().map(|buffer| buffer.as_ptr()).collect::<Vec<_>>();
    assert_eq!(addresses(found.to_data()), addresses(array.to_data()));
}

#[test]
fn buffers_without_rows_may_be_null() {
    for of in [DataType::Binary, DataType::Utf8View, DataType::Int8, DataType::Boolean] {
        let exported = FFI_ArrowArray::new(&ArrayData::new_empty(&of));
        for index in 0..exported.num_buffers() {
            // SAFETY: the structure has a pointer for each buffer.
            unsafe { ArrayFields::new(&exported).buffers.cast_mut().add(index).write(std::ptr::null()) };
        }
        assert_eq!(imported(exported, &of).map(|array| array.len()), Ok(0));
    }
}

#[test]
fn nulls_are_counted_whatever_null_count_claims() {
    let array = Int8Array::from(vec![Some(1), None, None]);
    for count in [-1, 0, 1, 3] {
        let mut exported = FFI_ArrowArray::new(&array.to_data());
        // SAFETY: the import does not trust the null count.
        unsafe { exported.set_null_count(count) };
        assert_eq!(imported(exported, array.data_type()).map(|array| array.null_count()), Ok(2));
    }
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    let of = DataType::FixedSizeBinary(i32::MAX);
    let mut exported = FFI_ArrowArray::new(&new_empty_array(&of).to_data());
    // SAFETY: the length is the first field.
    unsafe { std::ptr::from_mut(&mut exported).cast::<i64>().write(MAX_ROWS) };
    assert!(imported(exported, &of).is_err_and(|error| error.contains("a size is out of range")));
}
