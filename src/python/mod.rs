//! Python module `_native`: the only code that uses PyO3, with one native function per operation.

#[cfg(feature = "mimalloc")]
mod allocator;
mod arguments;
#[cfg(feature = "avro")]
mod avro;
mod c_interface;
mod capsule;
mod columns;
mod edit;
mod errors;
mod filter;
mod gil;
mod log;
mod message;
mod objects;
mod operations;
mod options;
mod packed;
#[cfg(debug_assertions)]
mod provoke;
mod recent;
mod scalar;
mod state;
mod tables;
mod values;

use pyo3::prelude::*;

use crate::panics::keep_quiet;

#[pymodule(gil_used = false)]
mod _native {
    #[cfg(feature = "avro")]
    #[pymodule_export]
    use super::avro::{AvroReader, AvroWriter};
    #[pymodule_export]
    use super::capsule::{Column, Schema, Stream, buffer_addresses, checked, header_lists};
    #[pymodule_export]
    use super::columns::{amqp_column, check_default, check_type, json_lines};
    #[pymodule_export]
    use super::edit::EditedKeys;
    #[pymodule_export]
    use super::filter::{check_pattern, truths};
    #[pymodule_export]
    use super::log::{batch, partition_batches, record_batches, uncompressed, with_checksum, with_producer};
    #[pymodule_export]
    use super::message::{MessageReader, convert, decode, encode, inspect, messages, select, validate};
    #[pymodule_export]
    use super::operations::{
        ColumnOperation, Convert, Decode, Edit, Encode, ExplodeBatches, Pack, Select, Validate, Where,
    };
    #[pymodule_export]
    use super::options::{Arguments, DecodeOptions, WriteOptions};
    #[pymodule_export]
    use super::packed::Packed;
    #[pymodule_export]
    use super::state::{join_value, split_value};
    #[pymodule_export]
    use super::tables::{codes, formats, limits, select_types, types, xxh3_64};
    #[pymodule_export]
    use super::values::{value_hashes, value_matches};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "mimalloc")]
        allocator::keep_pages();
        keep_quiet();
        // Set without `add`, which would list the name in `__all__`; a release does not have it.
        #[cfg(debug_assertions)]
        module.setattr("_provoke_panic", wrap_pyfunction!(provoke::provoke_panic, module)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
