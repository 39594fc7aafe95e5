//! Columns of other libraries, with any offsets, views and lists: those that are accepted are read inside of their buffers,
//! and they are those that `arrow-data` accepts.

use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, make_array, new_empty_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use letterhead::arrow::amqp::ReadAmqp;
use letterhead::arrow::filter::{Comparison, Filter, Literal, Operand, Quantifier, Step, Substring, Test};
use letterhead::arrow::truths::truths;
use letterhead::arrow::{Apply, Decode, Encode, Input, Operation, Validate, Work as _};
use letterhead::format::Format;
use letterhead::internals::{check_values, import_array, import_type};
use letterhead::log::{OnError, OnLoss};
use letterhead::options::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::types::Type;

use super::Target;
use super::structures::{Column, Source};

pub const TARGET: Target = Target { name: "imported", subjects, check };

/// The types of columns by the names of their layouts.
fn subjects() -> Vec<&'static str> {
    vec!["binary", "large_binary", "binary_view", "utf8", "large_utf8", "utf8_view", "list", "large_list", "structure"]
}

fn check(subject: &str, input: &[u8]) {
    if subject == "structure" {
        return import(input);
    }
    let Some(data) = column(subject, &mut Bytes(input)) else { return };
    let accepted = check_values(&data);
    let valid = data.validate_full();
    if !data.is_empty() {
        assert!(valid.is_err() || accepted.is_ok(), "{valid:?} {accepted:?}");
        // `arrow-data` also checks the padding and the prefix of views, the rows of a child that no list has, and that empty
        // text is not inside of a character.
        let is_stricter =
            subject.ends_with("view") || subject.ends_with("list") || accepted.is_ok() && is_empty_text(&data);
        assert!(is_stricter || valid.is_ok() == accepted.is_ok(), "{valid:?} {accepted:?}");
    }
    if accepted.is_err() || data.is_empty() {
        return;
    }
    let column = make_array(data);
    let column: &dyn Array = &column;
    let on_error = OnError::Column;
    match subject {
        "list" | "large_list" => {
            let write = WriteOptions { on_loss: OnLoss::Drop, ..WriteOptions::default() };
            let typed = WriteOptions { types: TypeOption::Binary, ..write.clone() };
            apply(Format::Kafka, &Encode { options: write, ..Encode::default() }, column);
            apply(Format::Iggy, &Encode { options: typed, ..Encode::default() }, column);
            apply(Format::Kafka, &Validate::default(), column);
        }
        "binary" | "large_binary" | "binary_view" => {
            for views in [false, true] {
                apply(Format::Kafka, &Decode { on_error, views, ..Decode::default() }, column);
            }
            apply(Format::RecordBatch, &Validate::default(), column);
            amqp(column);
        }
        _ => amqp(column),
    }
}

/// Imports structures of any content, and reads what is accepted.
fn import(input: &[u8]) {
    let mut input = Source(input);
    let column = Column::new(&mut input);
    // SAFETY: pointers and the texts behind them are as the interface demands.
    let Ok(of) = (unsafe { import_type(column.schema()) }) else { return };
    let empty = new_empty_array(&of);
    let array = column.array(&mut input);
    // A consumer keeps no schema.
    drop(column);
    // SAFETY: as above, and buffers have the bytes that the structure states.
    let Ok(data) = (unsafe { import_array(array, &of) }) else { return };
    let all = make_array(data);
    assert_eq!(*all.data_type(), of);
    for column in [&empty, &all.slice(0, all.len().min(64)), &all.slice(all.len().saturating_sub(3), all.len().min(3))]
    {
        read(column);
    }
}

/// Reads every value of a column, by all that is done with columns of any type.
fn read(column: &ArrayRef) {
    // Every value that a row has.
    let _: bool = column.to_data() == column.slice(0, column.len()).to_data();
    let on_error = OnError::Column;
    apply(Format::Kafka, &Decode { on_error, ..Decode::default() }, column);
    apply(Format::Kafka, &Encode::default(), column);
    apply(Format::RecordBatch, &Validate::default(), column);
    amqp(column);
    let tests = [
        Test::IsNull,
        Test::Compare(Comparison::Le, Literal::Int(1)),
        Test::Compare(Comparison::Eq, Literal::Bytes(b"a".to_vec())),
        Test::Contains(Substring::new(b"b")),
    ];
    for test in tests {
        let step = Step::Test(Operand::Field(0), Quantifier::Any, test);
        let filter = Filter { fields: vec!["name".into()], steps: vec![step], ..Filter::default() };
        let _: Result<_, _> = truths(&filter, &[Some(column.clone())], column.len());
    }
}

/// Whether a column that was accepted has nothing but empty text.
fn is_empty_text(data: &ArrayData) -> bool {
    match data.data_type() {
        DataType::Utf8 => StringArray::from(data.clone()).iter().flatten().all(str::is_empty),
        DataType::LargeUtf8 => LargeStringArray::from(data.clone()).iter().flatten().all(str::is_empty),
        _ => false,
    }
}

fn apply<V: Operation>(format: Format, operation: &V, column: &dyn Array) {
    // Errors are of the rows; that no byte outside of the buffers is read is for the address sanitizer.
    let _: Result<_, _> = format.visit(Apply(operation, Input::new(column)));
}

fn amqp(column: &dyn Array) {
    let type_ = Type::parse("string:amqp").expect("a type");
    let read = ReadAmqp { type_, dialect: Default::default(), on_error: OnError::Null };
    let _: Result<_, _> = read.apply(Input::new(column));
}

/// Takes the parts of a column from an input.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn small(&mut self, below: usize) -> Option<usize> {
        self.0.split_off_first().map(|first| usize::from(*first) % below)
    }

    /// A number near the lengths of buffers, or now and then one far from them.
    fn number(&mut self) -> Option<i64> {
        let number = i16::from_le_bytes(*self.0.split_off(..2)?.first_chunk()?);
        Some(if number % 97 == 96 { i64::from(number) << 17 } else { i64::from(number % 64) })
    }

    fn numbers<N>(&mut self, count: usize, narrow: impl Fn(i64) -> N) -> Option<Vec<N>> {
        (0..count).map(|_| self.number().map(&narrow)).collect()
    }
}

/// A column with the numbers of an input, of a type with this name; `None` where the input is too short.
fn column(subject: &str, input: &mut Bytes<'_>) -> Option<ArrayData> {
    let (rows, offset) = (input.small(6)?, input.small(3)?);
    let all = rows + offset;
    let (of, mut buffers, children) = match subject {
        "list" | "large_list" => {
            let is_large = subject == "large_list";
            let offsets = if is_large { longs(all, input)? } else { integers(all, input)? };
            let keys = column(["utf8", "large_utf8", "utf8_view"][input.small(3)?], input)?;
            let values = column(["binary", "large_binary", "binary_view"][input.small(3)?], input)?;
            let field = |name, data: &ArrayData| Field::new(name, data.data_type().clone(), true);
            let of = DataType::Struct(vec![field("key", &keys), field("value", &values)].into());
            let elements = keys.len().min(values.len());
            let structs = build(of, elements, 0, Vec::new(), vec![keys.slice(0, elements), values.slice(0, elements)]);
            let element = Field::new("element", structs.data_type().clone(), true).into();
            let of = if is_large { DataType::LargeList(element) } else { DataType::List(element) };
            (of, vec![offsets], vec![structs])
        }
        "binary_view" | "utf8_view" => {
            let of = if subject == "utf8_view" { DataType::Utf8View } else { DataType::BinaryView };
            let views = input.numbers(4 * all, |number| number as i32)?;
            (of, vec![Buffer::from_vec(views)], Vec::new())
        }
        "large_binary" | "large_utf8" => {
            let of = if subject == "large_utf8" { DataType::LargeUtf8 } else { DataType::LargeBinary };
            (of, vec![longs(all, input)?], Vec::new())
        }
        _ => {
            let of = if subject == "utf8" { DataType::Utf8 } else { DataType::Binary };
            (of, vec![integers(all, input)?], Vec::new())
        }
    };
    if children.is_empty() {
        let len = input.small(64)?.min(input.0.len());
        buffers.push(Buffer::from(input.0.split_off(..len)?));
    }
    Some(build(of, rows, offset, buffers, children))
}

fn integers(rows: usize, input: &mut Bytes<'_>) -> Option<Buffer> {
    input.numbers(rows + 1, |number| number as i32).map(Buffer::from_vec)
}

fn longs(rows: usize, input: &mut Bytes<'_>) -> Option<Buffer> {
    input.numbers(rows + 1, |number| number).map(Buffer::from_vec)
}

/// An array as a library passes it that has not looked at its buffers.
fn build(of: DataType, rows: usize, offset: usize, buffers: Vec<Buffer>, children: Vec<ArrayData>) -> ArrayData {
    let builder = ArrayData::builder(of).len(rows).offset(offset).buffers(buffers).child_data(children);
    // SAFETY: this is what the check is for: nothing reads the values before it has accepted them, and buffers have as many
    // offsets or views as there are rows.
    let mut data = unsafe { builder.build_unchecked() };
    data.align_buffers();
    data
}
