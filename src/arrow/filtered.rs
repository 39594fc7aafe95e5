//! [`Filtered`]: an operation on the rows of a column that a filter selects.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, StructArray, make_array, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;

use super::errors::Verdict;
use super::filter::{Filter, FilterSink, Known, blocks};
use super::input::ListInput;
use super::list_rows::messages_or_lists;
use super::rows::MessageRows;
use super::run::{OutputRows, Plan, run};
use super::{Input, Operation, Output, schema};
use crate::error::{Code, Direction, Error};
use crate::format_info::FormatInfo;
use crate::log::{OnError, no_reason};
use crate::memory;
use crate::number::fitting;
use crate::op::check_not_batch;
use crate::options::ReadOptions;
use crate::traits::MessageFormat;

/// Applies an operation to the rows that a filter selects. The operands of the filter are read from all rows first.
pub struct Filtered<O> {
    pub operation: O,
    pub filter: Arc<Filter>,
    pub options: ReadOptions,
    pub on_error: OnError,
}

/// Evaluates a filter for each message or list, and returns a column of results and a column of errors.
pub struct Matches {
    pub filter: Arc<Filter>,
    pub options: ReadOptions,
    pub on_error: OnError,
}

/// The rows that a filter selects.
struct Selected {
    rows: Vec<usize>,
    /// Errors of each selected row, if any row has errors.
    errors: Option<ArrayRef>,
    /// Row before which the filter ended.
    until: usize,
}

impl<O: Operation> Operation for Filtered<O> {
    const DIRECTION: Direction = O::DIRECTION;
    const DROPS_FIELDS: bool = O::DROPS_FIELDS;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        let data_type = self.operation.output_type(format)?;
        self.filter.check(format)?;
        Ok(data_type)
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        self.output_type(&E::INFO)?;
        let messages = MessageRows::of::<E>(input.column, self.options);
        let selected = Selected::of(&self.filter, messages, &E::INFO, input, self.options, self.on_error)?;
        selected.pass_to(input, &|input| self.operation.apply::<E>(input))
    }
}

impl Operation for Matches {
    const DROPS_FIELDS: bool = true;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        self.filter.check(format)?;
        let fields = schema::with_errors(vec![schema::nullable("selected", DataType::Boolean)], self.on_error);
        Ok(DataType::Struct(fields.into()))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let data_type = self.output_type(&E::INFO)?;
        let messages = MessageRows::of::<E>(input.column, self.options);
        let selected = Selected::of(&self.filter, messages, &E::INFO, input, self.options, self.on_error)?;
        Ok(selected.mark(input, &data_type, self.on_error))
    }
}

impl Selected {
    /// Applies an operation to the selected rows.
    fn pass_to(
        self,
        input: Input<'_>,
        operation: &dyn Fn(Input<'_>) -> Result<Output, Error>,
    ) -> Result<Output, Error> {
        let Selected { rows, errors, until } = self;
        let column = taken(input.column, &rows);
        let selected = Input { column: &column, from: 0, rows_before: 0, ..input };
        let row_of = |error: Error| match error.row().and_then(|row| rows.get(row)) {
            Some(row) => error.in_row(Some(input.rows_before + row)),
            None => error,
        };
        let mut output = operation(selected).map_err(row_of)?;
        if let Some(errors) = errors {
            output.column = with_errors(&output.column, &errors);
        }
        output.until = rows.get(output.until).copied().unwrap_or(until);
        Ok(output)
    }

    /// Returns whether each row is selected, and its errors.
    fn mark(self, input: Input<'_>, data_type: &DataType, on_error: OnError) -> Output {
        let DataType::Struct(fields) = data_type else { unreachable!("the type is a struct") };
        let Selected { rows, errors, until } = self;
        let mut selected = memory::vec_of(until - input.from);
        selected.resize(until - input.from, false);
        rows.iter().for_each(|row| selected[row - input.from] = true);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(BooleanArray::from(selected))];
        if on_error.is_column() {
            // Errors of rows that are not selected are not returned.
            let data_type = fields[1].data_type();
            let errors = errors.unwrap_or_else(|| new_null_array(data_type, rows.len()));
            let (mut next_rows, none) = (rows.iter().enumerate().peekable(), new_null_array(data_type, 1));
            let (data, none) = (errors.to_data(), none.to_data());
            let mut column = MutableArrayData::new(vec![&data, &none], true, until - input.from);
            for row in input.from..until {
                let (source, index) =
                    next_rows.next_if(|(_, next)| **next == row).map_or((1, 0), |(index, _)| (0, index));
                column.try_extend(source, index, index + 1).expect("errors take less than 2 GiB");
            }
            columns.push(make_array(column.freeze()));
        }
        Output { column: Arc::new(StructArray::new(fields.clone(), columns, None)), until }
    }

    fn of<'a>(
        filter: &Arc<Filter>,
        messages: Option<MessageRows<'a, FilterSink>>,
        format: &'static FormatInfo,
        input: Input<'a>,
        options: ReadOptions,
        policy: OnError,
    ) -> Result<Selected, Error> {
        if let (Some(_), Some(field)) = (ListInput::of(input.column), filter.fields.first()) {
            return Err(Error::Value(format!("where: a list of headers has no field '{field}'")));
        }
        let (rows, order) = messages_or_lists(messages, input.column, format)?;
        // Errors of rows that are excluded by their fields are ignored.
        let on_error = if policy == OnError::Raise { OnError::Column } else { policy };
        let plan = input.plan(format.name, Direction::Decode, on_error, options.limits);
        let make = || Ok(FilterSink::new(filter, format, order)?.strict(options.strict_types));
        let OutputRows { sink, report_columns, until, .. } = run(&*rows, input.from, &plan, &make)?;
        let errors = on_error.is_column().then(|| report_columns.errors.finish());
        let errors = errors.filter(|errors| errors.null_count() < errors.len());
        let (mut selected, mut verdicts, mut failed) = (Vec::new(), Vec::new(), false);
        for block in blocks(0..until - input.from) {
            let truth = sink.truth(block.clone(), Known::Everything);
            let by_fields = errors.as_ref().map(|_| sink.truth(block.clone(), Known::Fields)).unwrap_or_default();
            for (bit, row) in block.enumerate() {
                let is_failed =
                    errors.as_ref().is_some_and(|errors| errors.is_valid(row)) && by_fields.no >> bit & 1 == 0;
                if is_failed && policy == OnError::Raise {
                    let plan = Plan { on_error: OnError::Raise, ..plan };
                    return Err(run(&*rows, input.from + row, &plan, &make)
                        .err()
                        .unwrap_or_else(|| no_reason(format.name)));
                }
                let is_true = truth.yes >> bit & 1 == 1;
                if is_failed || is_true {
                    memory::push(&mut selected, row);
                    let is_certain = policy.is_null() || by_fields.yes >> bit & 1 == 1;
                    memory::push(&mut verdicts, Verdict { is_selected: is_true, is_certain });
                }
                failed |= is_failed;
            }
        }
        let errors = errors.filter(|_| failed).map(|errors| attribute_errors(&taken(&errors, &selected), &verdicts));
        selected.iter_mut().for_each(|row| *row += input.from);
        Ok(Selected { rows: selected, errors, until })
    }
}

/// Copies some rows of a column, preserving their order.
fn taken(column: &dyn Array, rows: &[usize]) -> ArrayRef {
    let data = column.to_data();
    if rows.len() == data.len() {
        return make_array(data);
    }
    // The buffers grow by doubling.
    memory::probe(data.get_slice_memory_size().unwrap_or(0).saturating_mul(2));
    let mut taken = MutableArrayData::new(vec![&data], false, rows.len());
    for range in rows.chunk_by(|row, next| row + 1 == *next) {
        // The rows have fewer bytes than the column.
        taken.try_extend(0, range[0], range[0] + range.len()).expect("a part of a column has smaller offsets");
    }
    make_array(taken.freeze())
}

/// Sets `column` to the name of the condition in each error that left the condition undecided.
fn attribute_errors(errors: &ArrayRef, verdicts: &[Verdict]) -> ArrayRef {
    let (element, offsets, values, nulls) = errors.as_list::<i32>().clone().into_parts();
    let (fields, mut columns, valid) = values.as_struct().clone().into_parts();
    let Some((column_index, _)) = fields.find("column") else { return Arc::clone(errors) };
    let Some((code_index, _)) = fields.find("code") else { return Arc::clone(errors) };
    let (texts, codes) =
        (columns[column_index].as_string::<i32>().clone(), columns[code_index].as_string::<i32>().clone());
    let mut named = StringBuilder::new();
    for (range, verdict) in offsets.windows(2).zip(verdicts) {
        for row in range[0] as usize..range[1] as usize {
            let column = texts.is_valid(row).then(|| texts.value(row));
            named.append_option(verdict.column_of(column, codes.value(row) == Code::Incomplete.name()));
        }
    }
    columns[column_index] = Arc::new(named.finish());
    Arc::new(ListArray::new(element, offsets, Arc::new(StructArray::new(fields, columns, valid)), nulls))
}

/// Adds the errors of the filter to the last column of a result. Errors without an output column are in both inputs,
/// and are copied once.
fn with_errors(result: &ArrayRef, filter_errors: &ArrayRef) -> ArrayRef {
    let (fields, mut columns, nulls) = result.as_struct().clone().into_parts();
    let Some(last) = columns.pop() else { return Arc::clone(result) };
    let (filter_errors, others): (&ListArray, &ListArray) = (filter_errors.as_list(), last.as_list());
    let (filter_data, other_data) = (filter_errors.values().to_data(), others.values().to_data());
    let in_column = others.values().as_struct().column_by_name("column").map(Arc::clone);
    let mut count = 0;
    let mut elements = MutableArrayData::new(vec![&filter_data, &other_data], true, 0);
    let mut extend = |source, range: Range<usize>| {
        elements.try_extend(source, range.start, range.end).expect("errors take less than 2 GiB");
        range.len()
    };
    let (mut ends, mut valid) = (vec![0], Vec::with_capacity(last.len()));
    let range =
        |list: &ListArray, row: usize| list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
    for row in 0..last.len() {
        let is_filter_error = filter_errors.is_valid(row);
        if is_filter_error {
            count += extend(0, range(filter_errors, row));
        }
        for index in range(others, row) {
            if !is_filter_error || in_column.as_ref().is_some_and(|column| column.is_valid(index)) {
                count += extend(1, index..index + 1);
            }
        }
        ends.push(fitting(count));
        valid.push(is_filter_error || others.is_valid(row));
    }
    let DataType::List(element) = last.data_type() else { unreachable!("errors are a list") };
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let merged =
        ListArray::new(Arc::clone(element), offsets, make_array(elements.freeze()), Some(NullBuffer::from(valid)));
    // A row with errors is never null.
    let nulls = nulls.map(|nulls| (0..nulls.len()).map(|row| nulls.is_valid(row) || merged.is_valid(row)).collect());
    columns.push(Arc::new(merged));
    Arc::new(StructArray::new(fields, columns, nulls))
}
