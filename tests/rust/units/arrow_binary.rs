//! Views into buffers of the input.

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::*;
use crate::kernel::buffer::Values as _;

#[test]
#[cfg_attr(target_endian = "big", ignore = "arrow-array reads short views as little-endian memory")]
fn views_refer_to_buffer_part_with_whole_value() {
    let bytes = Buffer::from_vec((0..=255).collect::<Vec<u8>>());
    let other = Buffer::from_vec(vec![7u8; 64]);
    let input = ViewInput::in_parts(&[bytes.clone(), other.clone()], 16, 48);
    let owned = [9u8; 40];
    let mut values = vec![&owned[..], &other[3..33], &[], &other[..5]];
    values.extend((0..200).flat_map(|start| [&bytes[start..start + 13], &bytes[start..start + 32], &bytes[start..]]));
    let mut views = input.views();
    values.iter().for_each(|value| views.push(value));
    let made = input.binary(views, None);
    let made = made.as_binary_view();
    assert_eq!(made.len(), values.len());
    assert!(made.iter().zip(&values).all(|(made, value)| made == Some(*value)));
    assert!(BinaryViewArray::try_new(made.views().clone(), made.data_buffers().to_vec(), None).is_ok());
}

#[test]
fn values_outside_the_input_do_not_keep_it() {
    let input = ViewInput::in_parts(&[Buffer::from_vec(vec![0u8; 100])], 1 << 30, 3 << 30);
    let mut views = input.views();
    [&[1u8; 20][..], &[2; 3], &[3; 13]].iter().for_each(|value| views.push(value));
    let made = input.binary(views, None);
    assert_eq!(made.as_binary_view().data_buffers().len(), 1);
    assert_eq!(made.as_binary_view().value(2), [3; 13]);
}
