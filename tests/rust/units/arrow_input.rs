//! Values of columns as cursors.

use super::*;
use crate::kernel::SLACK;

/// Bytes of this length that begin with a number, which identifies the value.
fn value(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| number.wrapping_add(at as u8)).collect()
}

#[test]
#[cfg_attr(target_endian = "big", ignore = "arrow-array reads short views as little-endian memory")]
fn kernels_read_views_of_any_length_that_other_bytes_follow() {
    let values: Vec<_> = [0, 1, 12, 13, 100, 12, 13].iter().zip(0..).map(|(len, number)| value(number, *len)).collect();
    let after = [vec![7; SLACK], vec![7; 12]];
    let padding = std::iter::repeat_n(&after[1], SLACK.div_ceil(size_of::<u128>()));
    let column = BinaryViewArray::from_iter_values(values.iter().chain([&after[0]]).chain(padding));
    for column in [column.clone(), column.slice(2, column.len() - 2)] {
        for row in 0..column.len() {
            let cursor = Bytes::View(&column).cursor(row).expect("a value");
            assert_eq!(cursor.peek_rest(), column.value(row));
            let is_followed = row + after.len() + SLACK.div_ceil(size_of::<u128>()) <= column.len();
            assert!(!is_followed || cursor.span().is_some_and(|span| span.bytes() == column.value(row)));
        }
    }
}
