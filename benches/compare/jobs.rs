// Every use that the comparison makes of the library. `main.rs` includes the file of each version, in a module that imports
// that version as `letterhead`.

use arrow_array::{Array, ArrayRef};

use letterhead::arrow::messages::Messages;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{self, Apply, Decode, Encode, Input, Select, Validate};
use letterhead::format::Format;
use letterhead::header::RequestedKey;
use letterhead::types::Type;

use super::{Operation, Run};

/// The operation as a function from column to column.
pub fn run(operation: &Operation) -> Run {
    match operation {
        Operation::Decode => on_columns(Format::Kafka, Decode::default()),
        Operation::Encode => on_columns(Format::Kafka, Encode::default()),
        Operation::Select(headers) => on_columns(
            Format::Kafka,
            Select { selections: headers.iter().map(selection).collect(), ..Default::default() },
        ),
        Operation::Validate => on_columns(Format::Kafka, Validate::default()),
        Operation::RecordBatches(headers) => {
            let columns = Some(vec!["offset".to_owned()]);
            let selections = headers.iter().map(selection).collect();
            on_columns(Format::RecordBatch, Messages { columns, selections, ..Default::default() })
        }
    }
}

fn on_columns(format: Format, operation: impl arrow::Operation + 'static) -> Run {
    Box::new(move |column: &ArrayRef| {
        let output = format.visit(Apply(&operation, Input::new(column))).unwrap();
        assert_eq!(output.until, column.len(), "not all rows fit one output column");
        output.column
    })
}

fn selection((key, type_name): &(String, String)) -> Selection {
    Selection::new(key.clone(), RequestedKey::Text(key.clone()), Type::parse(type_name).unwrap(), Repeat::Last)
}
