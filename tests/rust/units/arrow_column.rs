//! Values appended as bytes and as parsed values give the same column.

use super::*;
use crate::arrow::types::Dialect;
use crate::encoding::Encoding;
use crate::kernel::COPY;
use crate::types::{Coding, Type};

#[test]
fn a_value_is_the_same_by_its_bytes() {
    for scalar in Scalar::ALL {
        for dialect in [Dialect::Arrow, Dialect::Spark] {
            let of = scalar.arrow(dialect);
            if !Column::new(of.clone(), &ViewInput::default()).takes_bytes_of(*scalar) {
                continue;
            }
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let read = Type { scalar: *scalar, coding: Coding::Plain(Encoding::Bytes(order)), base: None };
                for bytes in (0..20).map(|len| [b'7', 0xc3, 0xa9].repeat(7)[..len].to_vec()) {
                    let (mut by_bytes, mut by_value) = (
                        Column::new(of.clone(), &ViewInput::default()),
                        Column::new(of.clone(), &ViewInput::default()),
                    );
                    let value = read.read(&bytes, dialect);
                    let padded = [&bytes[..], &[0; COPY]].concat();
                    // SAFETY: `COPY` bytes follow the value.
                    let raw = unsafe { RawValue::new(padded.as_ptr(), bytes.len(), false) };
                    let pushed = by_bytes.push_raw(&[raw], order, Progress { bytes: 1, all: 1 });
                    assert_eq!(pushed == 1, value.is_ok(), "{scalar:?} {bytes:?}");
                    value.into_iter().for_each(|value| by_value.push(value));
                    assert_eq!(&by_bytes.finish(), &by_value.finish(), "{scalar:?} {order:?} {bytes:?}");
                }
            }
        }
    }
}
