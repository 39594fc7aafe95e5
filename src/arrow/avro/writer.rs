//! [`AvroWriter`] converts rows to Avro values, each without a container or a prefix.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StructArray, make_array};
use arrow_avro::schema::SCHEMA_METADATA_KEY;
use arrow_avro::writer::format::AvroBinaryFormat;
use arrow_avro::writer::{EncodedRows, WriterBuilder};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::check::{WriterSchema, without_uuids};
use super::{decoder, unusable};
use crate::error::{Code, Error, ErrorDetail};

/// Writes columns as values of one schema.
#[derive(Debug)]
pub struct AvroWriter {
    checks: WriterSchema,
    schema: SchemaRef,
}

/// Encoded values, or the errors of rows, by row.
pub type Encoded = Result<BinaryArray, Vec<(usize, ErrorDetail)>>;

impl AvroWriter {
    /// Parses a schema, which is a record.
    pub fn new(schema: &str) -> Result<AvroWriter, Error> {
        let checks = WriterSchema::parse(schema)?;
        let text = without_uuids(schema)?;
        let fields = decoder(&text, None, 1)?.schema().fields().clone();
        let metadata = HashMap::from([(SCHEMA_METADATA_KEY.to_owned(), text)]);
        let writer = AvroWriter { checks, schema: Arc::new(Schema::new_with_metadata(fields, metadata)) };
        writer.encode_batch(&RecordBatch::new_empty(writer.schema.clone())).map_err(unusable)?;
        Ok(writer)
    }

    /// Schema of the columns, in the types from which values are written.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes non-null rows.
    pub fn encode(&self, rows: &StructArray) -> Result<Encoded, Error> {
        if rows.null_count() > 0 {
            return Err(Error::Internal("rows to encode contain a null".into()));
        }
        let mut errors = BTreeMap::new();
        let indexes: Vec<Option<usize>> = (0..rows.len()).map(Some).collect();
        for (field, column) in self.schema.fields().iter().zip(rows.columns()) {
            note_nulls(field, column, &indexes, &mut errors);
        }
        if !errors.is_empty() {
            return Ok(Err(errors.into_iter().collect()));
        }
        let other_types = |_| Error::Type("the rows do not have the types of the schema".into());
        let columns = self.schema.fields().iter().zip(rows.columns());
        let columns = columns.map(|(field, column)| with_type(column, field.data_type())).collect::<Result<_, _>>();
        let batch =
            columns.and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns)).map_err(other_types)?;
        let Ok(encoded) = self.encode_batch(&batch) else {
            let failed = (0..batch.num_rows()).filter(|row| self.encode_batch(&batch.slice(*row, 1)).is_err());
            let message = "the schema does not allow the value";
            return Ok(Err(failed.map(|row| (row, ErrorDetail::of_message(Code::WrongType, message))).collect()));
        };
        for (row, value) in encoded.iter().enumerate() {
            if let Err(error) = self.checks.check(&value) {
                errors.insert(row, ErrorDetail { byte: None, ..error });
            }
        }
        if errors.is_empty() { values(&encoded).map(Ok) } else { Ok(Err(errors.into_iter().collect())) }
    }

    fn encode_batch(&self, batch: &RecordBatch) -> Result<EncodedRows, ArrowError> {
        let mut encoder = WriterBuilder::new(self.schema.as_ref().clone()).build_encoder::<AvroBinaryFormat>()?;
        encoder.encode(batch)?;
        Ok(encoder.flush())
    }
}

fn values(encoded: &EncodedRows) -> Result<BinaryArray, Error> {
    let ends = encoded.offsets().iter().map(|end| i32::try_from(*end)).collect::<Result<Vec<_>, _>>();
    let ends = ends.map_err(|_| Error::Value("the values have more than 2 GiB: pass fewer rows at a time".into()))?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    Ok(BinaryArray::new(offsets, Buffer::from(encoded.bytes().clone()), None))
}

/// Collects the rows with a null where the schema requires a value, and the name of the field. `rows` contains the row
/// of each value; None for values within a null.
fn note_nulls(field: &Field, array: &ArrayRef, rows: &[Option<usize>], errors: &mut BTreeMap<usize, ErrorDetail>) {
    if array.null_count() > 0 && !field.is_nullable() {
        for (index, row) in rows.iter().enumerate() {
            if let Some(row) = row
                && array.is_null(index)
            {
                let message = format!("field {} is null, which the schema does not allow", field.name());
                errors.entry(*row).or_insert(ErrorDetail::of_message(Code::WrongType, message));
            }
        }
    }
    let row_of = |index: usize| if array.is_null(index) { None } else { rows[index] };
    let rows_of_items = |offsets: &OffsetBuffer<i32>| {
        let mut items = vec![None; offsets[offsets.len() - 1] as usize];
        for index in 0..array.len() {
            items[offsets[index] as usize..offsets[index + 1] as usize].fill(row_of(index));
        }
        items
    };
    // Arrays of other types are rejected later.
    match field.data_type() {
        DataType::Struct(fields) => {
            let rows: Vec<_> = (0..array.len()).map(row_of).collect();
            for (field, column) in fields.iter().zip(array.as_struct_opt().map_or(&[][..], StructArray::columns)) {
                note_nulls(field, column, &rows, errors);
            }
        }
        DataType::List(item) => {
            if let Some(list) = array.as_list_opt::<i32>() {
                let rows = rows_of_items(list.offsets());
                note_nulls(item, &list.values().slice(0, rows.len()), &rows, errors);
            }
        }
        DataType::Map(entries, _) => {
            if let Some(map) = array.as_map_opt() {
                let rows = rows_of_items(map.offsets());
                let items: ArrayRef = Arc::new(map.entries().slice(0, rows.len()));
                note_nulls(entries, &items, &rows, errors);
            }
        }
        _ => {}
    }
}

/// Returns an array with the names and the metadata of a type.
fn with_type(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    fn convert(data: ArrayData, data_type: &DataType) -> Result<ArrayData, ArrowError> {
        if data.data_type() == data_type {
            return Ok(data);
        }
        let types: Vec<&DataType> = match data_type {
            DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
            DataType::List(item) | DataType::Map(item, _) => vec![item.data_type()],
            _ => return Err(ArrowError::SchemaError("another type".into())),
        };
        if types.len() != data.child_data().len() {
            return Err(ArrowError::SchemaError("other fields".into()));
        }
        let children = data.child_data().iter().cloned().zip(types);
        let children = children.map(|(child, data_type)| convert(child, data_type)).collect::<Result<_, _>>()?;
        data.into_builder().data_type(data_type.clone()).child_data(children).build()
    }
    Ok(make_array(convert(array.to_data(), data_type)?))
}
