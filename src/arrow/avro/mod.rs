//! [`AvroReader`] converts Avro values, each without a container or a prefix, to columns, and [`AvroWriter`] converts
//! columns to such values.

use std::collections::BTreeMap;

use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_avro::reader::{Decoder, DecoderMode, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{Code, Error, ErrorDetail, interrupted};
use crate::interrupt;

mod check;
mod writer;

pub use self::check::WriterSchema;
use self::check::without_uuids;
pub use self::writer::AvroWriter;

/// Number of rows in a batch. If one of the rows fails, the whole batch is decoded twice.
const BATCH_ROWS: usize = 1 << 16;

/// Reads values of one schema into the columns of another.
#[derive(Debug)]
pub struct AvroReader {
    writer: WriterSchema,
    writer_text: String,
    reader_text: Option<String>,
    schema: SchemaRef,
}

/// Decoded rows in batches, and the errors of the other rows.
pub type Decoded = (Vec<RecordBatch>, Vec<(usize, ErrorDetail)>);

impl AvroReader {
    /// Resolves the schema of written values to the schema of the columns, which is the same by default. Both are
    /// records.
    pub fn new(writer: &str, reader: Option<&str>) -> Result<AvroReader, Error> {
        if let Some(reader) = reader {
            WriterSchema::parse(reader)?;
        }
        let (writer_text, reader_text) = (without_uuids(writer)?, reader.map(without_uuids).transpose()?);
        let writer = WriterSchema::parse(writer)?;
        let schema = decoder(&writer_text, reader_text.as_deref(), 1)?.schema();
        Ok(AvroReader { writer, writer_text, reader_text, schema })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes non-null values.
    pub fn decode(&self, values: &BinaryArray) -> Result<Decoded, Error> {
        if values.null_count() > 0 {
            return Err(Error::Internal("values of a schema contain a null".into()));
        }
        let (mut batches, mut errors) = (Vec::new(), BTreeMap::new());
        for start in (0..values.len()).step_by(BATCH_ROWS) {
            let mut rows = Vec::with_capacity(BATCH_ROWS.min(values.len() - start));
            for row in start..values.len().min(start + BATCH_ROWS) {
                match self.writer.check(values.value(row)) {
                    Ok(()) => rows.push(row),
                    Err(error) => {
                        errors.insert(row, error);
                    }
                }
            }
            batches.extend(self.decode_checked(values, rows, &mut errors)?);
            if interrupt::is_requested() {
                return Err(interrupted());
            }
        }
        Ok((batches, errors.into_iter().collect()))
    }

    /// Decodes values that are valid for the writer's schema. The schema of the columns may reject some of them.
    fn decode_checked(
        &self,
        values: &BinaryArray,
        mut rows: Vec<usize>,
        errors: &mut BTreeMap<usize, ErrorDetail>,
    ) -> Result<Option<RecordBatch>, Error> {
        if rows.is_empty() {
            return Ok(None);
        }
        let mut decoder = self.decoder(rows.len())?;
        let mut failed = errors.len();
        // A decoder that failed within a value can only be used to find the other values that fail.
        for row in &rows {
            if let Err(error) = decode_value(&mut decoder, values.value(*row)) {
                errors.insert(*row, error);
            }
        }
        if errors.len() == failed
            && let Ok(batch) = decoder.flush()
        {
            return Ok(batch);
        }
        if errors.len() == failed {
            // Text that was written as bytes is validated when columns are built.
            for row in &rows {
                let mut decoder = self.decoder(1)?;
                let flushed = decode_value(&mut decoder, values.value(*row))
                    .and_then(|()| decoder.flush().map_err(|_| not_readable()));
                if let Err(error) = flushed {
                    errors.insert(*row, error);
                }
            }
        }
        rows.retain(|row| !errors.contains_key(row));
        failed = errors.len();
        let batch = self.decode_checked(values, rows, errors)?;
        if errors.len() == failed {
            Ok(batch)
        } else {
            Err(Error::Internal("values failed that were read before".into()))
        }
    }

    fn decoder(&self, rows: usize) -> Result<Decoder, Error> {
        decoder(&self.writer_text, self.reader_text.as_deref(), rows)
    }
}

fn decoder(writer: &str, reader: Option<&str>, rows: usize) -> Result<Decoder, Error> {
    // A value has no prefix that refers to a schema, so the only schema of the store gets an arbitrary id.
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    let name = Fingerprint::Id(0);
    store.set(name, AvroSchema::new(writer.to_owned())).map_err(unusable)?;
    let mut builder = ReaderBuilder::new()
        .with_batch_size(rows)
        .with_decoder_mode(DecoderMode::UnframedDatum)
        .with_writer_schema_store(store)
        .with_active_fingerprint(name);
    if let Some(reader) = reader {
        builder = builder.with_reader_schema(AvroSchema::new(reader.to_owned()));
    }
    builder.build_decoder().map_err(unusable)
}

fn unusable(error: ArrowError) -> Error {
    Error::Value(format!("the Avro schema cannot be used: {error}"))
}

fn decode_value(decoder: &mut Decoder, value: &[u8]) -> Result<(), ErrorDetail> {
    // The decoder's own error message is not used, because it may contain data.
    match decoder.decode(value) {
        Ok(read) if read == value.len() => Ok(()),
        _ => Err(not_readable()),
    }
}

fn not_readable() -> ErrorDetail {
    ErrorDetail::of_message(Code::WrongType, "the schema of the columns does not allow the value")
}
