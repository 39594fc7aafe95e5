//! Import and export of arrays, streams and types by Arrow's C data interface in PyCapsules.
//!
//! The structures come from `arrow-array`, whose streams only contain record batches; these contain arrays of any type.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{NonNull, null, null_mut};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, StructArray, make_array};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::errors::internal_text;
use crate::arrow::c_structures::{import_array, import_type};
use crate::error::Error;
use crate::panics;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// Error numbers of a stream, `EIO`, `ENOMEM` and `EINVAL`.
const IO_ERROR: c_int = 5;
const NO_MEMORY: c_int = 12;
const INVALID: c_int = 22;

/// A column of another library.
pub enum ImportedColumn {
    Array(ArrayRef),
    Stream(ImportedStream),
}

/// Imports one array; a stream is an error.
pub fn import_one(column: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    match import(column)? {
        ImportedColumn::Array(array) => Ok(array),
        ImportedColumn::Stream(_) => Err(PyTypeError::new_err("an array is needed, not a stream")),
    }
}

/// Imports a record batch or a struct array; a stream is an error.
pub fn import_batch(rows: &Bound<'_, PyAny>) -> PyResult<StructArray> {
    let structs = import_one(rows)?.as_struct_opt().cloned();
    structs.ok_or_else(|| PyTypeError::new_err("a record batch is needed"))
}

/// Imports any object with `__arrow_c_array__` or `__arrow_c_stream__`. Violations of the interface are rejected where
/// they can be detected.
pub fn import(column: &Bound<'_, PyAny>) -> PyResult<ImportedColumn> {
    let py = column.py();
    check_by_owner(column)?;
    if column.hasattr(pyo3::intern!(py, "__arrow_c_array__"))? {
        let capsules = column.call_method0(pyo3::intern!(py, "__arrow_c_array__"))?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
        return import_capsules(&schema, &array).map(ImportedColumn::Array);
    }
    if column.hasattr(pyo3::intern!(py, "__arrow_c_stream__"))? {
        let capsule = column.call_method0(pyo3::intern!(py, "__arrow_c_stream__"))?;
        return ImportedStream::new(&capsule.extract()?).map(ImportedColumn::Stream);
    }
    Err(PyErr::from_value(py.import("letterhead._arrow_types")?.call_method1("no_column_error", (column,))?))
}

fn import_capsules(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrayRef> {
    let schema: NonNull<FFI_ArrowSchema> = schema.pointer_checked(Some(SCHEMA))?.cast();
    let array: NonNull<FFI_ArrowArray> = array.pointer_checked(Some(ARRAY))?.cast();
    // SAFETY: the interface promises a structure of this type in a capsule of this name, and the capsule lives during
    // the call. The array is moved out; a released one stays in the capsule.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() {
        return Err(PyValueError::new_err("the array was imported already: export it again"));
    }
    // SAFETY: as above.
    let data_type = unsafe { import_type(schema.as_ref()) }.map_err(PyTypeError::new_err)?;
    // SAFETY: as above.
    unsafe { import_array(array, &data_type) }.map(make_array).map_err(PyTypeError::new_err)
}

/// Lets pyarrow check offsets against the lengths of its buffers, which the C interface does not pass.
fn check_by_owner(column: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = column.py();
    let class = column.get_type();
    if class.module()?.to_str()? != "pyarrow.lib" {
        return Ok(());
    }
    match column.getattr_opt(pyo3::intern!(py, "validate"))? {
        Some(validate) => validate.call0().map(drop),
        None => Ok(()),
    }
}

/// The arrays of a stream of another library.
pub struct ImportedStream {
    stream: FFI_ArrowArrayStream,
    data_type: DataType,
}

impl ImportedStream {
    fn new(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream: NonNull<FFI_ArrowArrayStream> = capsule.pointer_checked(Some(STREAM))?.cast();
        // SAFETY: the interface promises a stream in a capsule of this name, and the capsule lives during the call. The
        // stream is moved out; a released one stays in the capsule.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        if stream.release().is_none() {
            return Err(PyValueError::new_err("the stream was imported already: export it again"));
        }
        let get_schema = stream.get_schema();
        // SAFETY: the stream is not released, the function is its own, and the exporter promises that it writes a
        // schema.
        let data_type = unsafe {
            let schema = pull(&mut stream, get_schema, FFI_ArrowSchema::empty()).map_err(PyValueError::new_err)?;
            import_type(&schema).map_err(PyTypeError::new_err)?
        };
        Ok(Self { stream, data_type })
    }

    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }
}

impl Iterator for ImportedStream {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let get_next = self.stream.get_next();
        // SAFETY: the stream is not released before it is dropped, the function is its own, and the exporter promises
        // that it writes an array of the stream's type.
        unsafe {
            match pull(&mut self.stream, get_next, FFI_ArrowArray::empty()) {
                Ok(array) if array.is_released() => None,
                Ok(array) => {
                    let imported = import_array(array, &self.data_type).map(make_array);
                    Some(imported.map_err(ArrowError::CDataInterface))
                }
                Err(message) => Some(Err(ArrowError::CDataInterface(message))),
            }
        }
    }
}

/// Calls a function of a stream that writes a structure, or returns the stream's message about its failure.
///
/// # Safety
///
/// The stream is not released, and the function is its own.
unsafe fn pull<T>(
    stream: &mut FFI_ArrowArrayStream,
    function: Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut T) -> c_int>,
    mut empty: T,
) -> Result<T, String> {
    // SAFETY: the caller's contract, and both pointers are valid for the call. The message is requested after a
    // failure, as the interface requires. The message is null or a text that ends with a zero byte, and valid until the
    // next call of the stream.
    unsafe {
        let code = function.map_or(INVALID, |function| function(stream, &mut empty));
        if code == 0 {
            return Ok(empty);
        }
        let message = stream.get_last_error().map(|get_last_error| get_last_error(stream));
        match message.filter(|message| !message.is_null()) {
            Some(message) => {
                let message = CStr::from_ptr(message).to_string_lossy();
                // pyarrow appends the whole traceback.
                Err(message.split(". Detail: Python exception:").next().unwrap_or_default().to_owned())
            }
            None => Err(format!("error {code} without a message")),
        }
    }
}

pub fn export_type<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, to_schema(field).map_err(|error| PyValueError::new_err(error.to_string()))?, SCHEMA)
}

fn to_schema(field: &Field) -> Result<FFI_ArrowSchema, ArrowError> {
    FFI_ArrowSchema::try_from(field)
}

pub fn export_array<'py>(
    py: Python<'py>,
    field: &Field,
    array: &ArrayRef,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    Ok((export_type(py, field)?, PyCapsule::new_with_value(py, FFI_ArrowArray::new(&array.to_data()), ARRAY)?))
}

/// The arrays of an exported stream.
pub type Arrays = Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>;

pub fn export_stream<'py>(py: Python<'py>, field: &Field, arrays: Arrays) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = Box::new(Exported { field: field.clone(), arrays, last_error: CString::default() });
    // SAFETY: the functions follow the interface, and the box, which `release` alone frees, is what they expect.
    let stream = unsafe {
        FFI_ArrowArrayStream::new_unchecked(
            Some(get_schema),
            Some(get_next),
            Some(get_last_error),
            Some(release),
            Box::into_raw(exported).cast(),
        )
    };
    PyCapsule::new_with_value(py, stream, STREAM)
}

/// Private data of an exported stream.
struct Exported {
    field: Field,
    arrays: Arrays,
    last_error: CString,
}

/// Runs work for a consumer in C, and writes its result. The text of an error or a panic is stored, and its number
/// returned.
///
/// # Safety
///
/// As for `borrow_exported`, and a result can be written to `out`.
unsafe fn write_result<T>(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut T,
    work: impl FnOnce(&mut Exported) -> Result<T, ArrowError>,
) -> c_int {
    // SAFETY: the caller's contract.
    let Some(exported) = (unsafe { borrow_exported(stream) }) else { return INVALID };
    let (code, text) = match panics::catch_panic(|| work(exported)) {
        Ok(Ok(result)) => {
            // SAFETY: the caller's contract.
            unsafe { out.write(result) };
            return 0;
        }
        Ok(Err(error @ ArrowError::MemoryError(_))) => (NO_MEMORY, error.to_string()),
        Err(Error::Memory(refused)) => (NO_MEMORY, refused.to_string()),
        Ok(Err(error @ ArrowError::IoError(..))) => (IO_ERROR, error.to_string()),
        Ok(Err(error)) => (INVALID, error.to_string()),
        Err(error) => (IO_ERROR, internal_text(&error.to_string())),
    };
    exported.last_error = CString::new(text.replace('\0', "")).unwrap_or_default();
    code
}

/// State of an exported stream; `None` once it is released.
///
/// # Safety
///
/// The stream is null or from `export_stream`, and no other thread uses it, as the interface requires. The stream
/// outlives the result, and is not released meanwhile.
unsafe fn borrow_exported<'a>(stream: *mut FFI_ArrowArrayStream) -> Option<&'a mut Exported> {
    // SAFETY: `export_stream` made the pointer from a box of this type. `release` alone frees it, and leaves null.
    unsafe { stream.as_mut()?.private_data().cast::<Exported>().as_mut() }
}

unsafe extern "C" fn get_schema(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the caller passes memory for a schema, which needs no drop, and a stream of `export_stream`.
    unsafe { write_result(stream, out, |exported| to_schema(&exported.field)) }
}

unsafe extern "C" fn get_next(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: the caller passes memory for an array, which needs no drop, and a stream of `export_stream`.
    unsafe {
        write_result(stream, out, |exported| {
            let next = exported.arrays.next().transpose()?;
            // A released array marks the end.
            Ok(next.map_or_else(FFI_ArrowArray::empty, |array| FFI_ArrowArray::new(&array.to_data())))
        })
    }
}

unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller's contract.
    unsafe { borrow_exported(stream) }.map_or(null(), |exported| exported.last_error.as_ptr())
}

unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the caller passes a stream of `export_stream`, or null.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return };
    // SAFETY: a stream without its private data and its release function is a released stream.
    let exported = unsafe {
        stream.set_release(None);
        stream.set_private_data(null_mut()).cast::<Exported>()
    };
    // A second call has nothing to free.
    if !exported.is_null() {
        // SAFETY: `export_stream` made the pointer from a box, and the pointer was just removed from the stream.
        drop(unsafe { Box::from_raw(exported) });
    }
}
