//! A message of one format into every other: what is written is read, and columns do what is done to one message.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use letterhead::arrow::Convert;
use letterhead::encoding::Encoding;
use letterhead::error::{Error, ErrorDetail};
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::log::{OnError, OnLoss};
use letterhead::op::convert::{Converted, convert_message};
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::type_option::TypeOption;
use letterhead::value::ByteOrder;
use letterhead::value_type::TypeCodes;

use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats, formats_of_one, named, seal};
use crate::columns::{apply_to, faults_at, told};
use crate::common::{Message, STRICT, read};

pub const TARGET: Target = Target { name: "convert", subjects: formats_of_one, check };

/// One conversion.
#[derive(Clone)]
struct Way {
    source: Format,
    target: Format,
    read: ReadOptions,
    types: TypeOption,
}

impl Way {
    fn write(&self, on_loss: OnLoss) -> WriteOptions {
        WriteOptions { on_loss, types: self.types.clone(), ..WriteOptions::default() }
    }

    fn convert(&self, serialized: &[u8], on_loss: OnLoss) -> Result<Converted, ErrorDetail> {
        match convert_message(serialized, self.source, self.target, self.read, self.write(on_loss)) {
            Ok(converted) => Ok(converted),
            Err(Error::Headers(_, located)) => Err(located.error),
            Err(other) => panic!("{other}"),
        }
    }
}

fn check(name: &str, data: &[u8]) {
    let (source, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let Some((place, serialized)) = data.split_first() else { return };
    let targets = formats(|info| info.class != Class::Batch && info.is_target);
    let target = named(targets[usize::from(*place) % targets.len()]);
    let mut serialized = serialized.to_vec();
    if shape.bit(5) {
        seal::seal(source, &mut serialized);
    }
    let types = kinds_between(source, target, shape.bits(3, 2));
    let way = Way { source, target, read: ReadOptions { text_keys: false, ..shape.options() }, types };
    let reported = way.convert(&serialized, OnLoss::Report);
    let raised = way.convert(&serialized, OnLoss::Raise);
    match &reported {
        Err(error) => assert_eq!(raised.as_ref(), Err(error)),
        Ok(reported) => {
            written_is_read(&way, &serialized, reported);
            // A loss that the caller agreed to is reported, and not raised.
            let dropped = way.convert(&serialized, OnLoss::Drop).expect("as it is reported");
            assert_eq!(dropped.data, reported.data);
            match &raised {
                Ok(raised) => assert_eq!(raised.data, reported.data),
                Err(error) => assert!(reported.losses.iter().any(|loss| loss.message == error.message)),
            }
        }
    }
    in_columns(&way, &serialized, &reported);
}

/// The option of types for a conversion, if it needs one.
fn kinds_between(source: Format, target: Format, choice: usize) -> TypeOption {
    let spelled = [Encoding::Bytes(ByteOrder::Big), Encoding::Bytes(ByteOrder::Little), Encoding::Text];
    match (source.info().types, target.info().types, spelled.get(choice)) {
        (TypeCodes::None, TypeCodes::None, _) | (_, _, None) => TypeOption::Unset,
        (_, TypeCodes::None, Some(encoding)) => TypeOption::Untyped(*encoding),
        (TypeCodes::None, _, Some(_)) => TypeOption::Binary,
        _ => TypeOption::Unset,
    }
}

fn written_is_read(way: &Way, serialized: &[u8], converted: &Converted) {
    let Some(data) = &converted.data else { return };
    let written = read(way.target, data, STRICT).expect("what is written is read").remove(0);
    let original = read(way.source, serialized, way.read).expect("it was converted").remove(0);
    let headers = original.heads().len();
    assert!(written.heads().len() <= headers);
    if converted.losses.is_empty() {
        assert_eq!(written.heads().len(), headers, "nothing is lost without a word");
    }
    if way.source == way.target && !way.read.lenient {
        assert_eq!(converted.losses, []);
        let headers = |message: Message| message.headers.unwrap_or_default();
        assert_eq!(headers(written), headers(original), "what is empty may not be there at all");
    }
}

fn in_columns(way: &Way, serialized: &[u8], alone: &Result<Converted, ErrorDetail>) {
    let operation =
        Convert { target: way.target, read: way.read, write: way.write(OnLoss::Report), on_error: OnError::Column };
    let rows = [Some(serialized), None, Some(serialized)];
    let made = apply_to(way.source, &operation, &Layout::Small.column(&rows, &BEHIND)).expect("nothing is raised");
    let column = |name: &str| made.as_struct().column_by_name(name).expect("it was asked for");
    for row in [0, 2] {
        let data = column("data").as_binary::<i32>();
        let data = data.is_valid(row).then(|| data.value(row).to_vec());
        let found = faults_at(column("error"), row);
        match alone {
            Ok(converted) => {
                assert_eq!((data.as_ref(), found), (converted.data.as_ref(), vec![]));
                let losses = column("losses").as_list::<i32>();
                assert_eq!(losses.value_length(row) as usize, converted.losses.len());
            }
            Err(error) => {
                assert_eq!(data, None);
                assert_eq!(found.first(), Some(&told(error)));
            }
        }
    }
    let nothing = apply_to(way.source, &operation, &Layout::View.column(&[None], &[])).expect("nothing is raised");
    assert_eq!(&nothing.slice(0, 1), &made.slice(1, 1));
}
