// `jobs.rs` for versions that have no such file, up to commit 7d6d043.

use arrow_array::{Array, ArrayRef};

use letterhead::arrow::messages::Messages;
use letterhead::arrow::select::{Repeat, Want};
use letterhead::arrow::{Apply, Decode, Encode, Input, Select, Validate, Verb};
use letterhead::format::Format;
use letterhead::header::WantedKey;
use letterhead::types::Type;

use super::{Operation, Run};

/// The operation as a function from column to column.
pub fn run(operation: &Operation) -> Run {
    match operation {
        Operation::Decode => on_columns(Format::Kafka, Decode::default()),
        Operation::Encode => on_columns(Format::Kafka, Encode::default()),
        Operation::Select(headers) => {
            on_columns(Format::Kafka, Select { wants: headers.iter().map(want).collect(), ..Default::default() })
        }
        Operation::Validate => on_columns(Format::Kafka, Validate::default()),
        Operation::RecordBatches(headers) => {
            let columns = Some(vec!["offset".to_owned()]);
            let wants = headers.iter().map(want).collect();
            on_columns(Format::RecordBatch, Messages { columns, wants, ..Default::default() })
        }
    }
}

fn on_columns(format: Format, operation: impl Verb + 'static) -> Run {
    Box::new(move |column: &ArrayRef| {
        let output = format.visit(Apply(&operation, Input::new(column))).unwrap();
        assert_eq!(output.until, column.len(), "not all rows fit one output column");
        output.column
    })
}

fn want((key, type_name): &(String, String)) -> Want {
    Want {
        output: key.clone(),
        key: WantedKey::Text(key.clone()),
        of: Type::parse(type_name).unwrap(),
        repeat: Repeat::Last,
        required: false,
    }
}
