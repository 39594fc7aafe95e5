//! [`Inspect`] labels every byte of a message with its field, and lists all errors.

use std::marker::PhantomData;

use crate::cursor::Cursor;
use crate::error::ErrorDetail;
use crate::format::Visitor;
use crate::interrupt;
use crate::log::{CollectErrors, FailFast, Label, Log, MIN_REPORTS, OnLoss, Result, Stop};
use crate::options::ReadOptions;
use crate::sink::{AnySink, Discard};
use crate::traits::{
    BatchFormat, FieldsOf, HeadersFormat, MessageFormat, MessageReceiver, Receiver, message_len, parse_batch,
};

/// Labelled message. The labels are in order and cover the message without gaps.
#[derive(Debug)]
pub struct Inspection {
    pub labels: Vec<Label>,
    pub errors: Vec<ErrorDetail>,
}

pub struct Inspect<'a> {
    pub data: &'a [u8],
    pub options: ReadOptions,
}

/// Label of bytes that were not parsed.
const NOT_READ: &str = "not read";

impl Visitor for Inspect<'_> {
    type Out = Inspection;

    fn visit<E: MessageFormat>(self) -> Inspection {
        let mut log = CollectErrors::with_labels(self.options.limits.reports);
        // The errors are the result.
        let _ = (E::INFO.parse)(Cursor::new(self.data), self.options, log.either(), AnySink(&mut Discard));
        inspection(log, self.data.len())
    }

    fn visit_batch<B: BatchFormat>(self) -> Inspection {
        let log = CollectErrors::with_labels(self.options.limits.reports);
        inspection(read_batch::<B>(self.data, self.options, log), self.data.len())
    }
}

fn inspection(mut log: CollectErrors, len: usize) -> Inspection {
    let (labels, limit) = log.take_labels();
    Inspection { labels: truncate_labels(without_gaps(labels, len), len, limit), errors: log.take_errors() }
}

/// Returns all errors of a batch.
pub fn batch_errors<B: BatchFormat>(data: &[u8], options: ReadOptions) -> Vec<ErrorDetail> {
    read_batch::<B>(data, options, CollectErrors::new(OnLoss::Raise, options.limits.reports)).take_errors()
}

fn read_batch<B: BatchFormat>(data: &[u8], options: ReadOptions, mut log: CollectErrors) -> CollectErrors {
    // The errors are the result.
    let mut receiver = ParseHeaders::<B>::new(options);
    let _ = parse_batch::<B, _>(Cursor::new(data), options, &mut log, &mut Receiver::new(&mut receiver, &mut ()));
    log
}

/// Parses the headers of every message for their errors.
pub struct ParseHeaders<B>(ReadOptions, PhantomData<B>);

impl<B> ParseHeaders<B> {
    pub fn new(options: ReadOptions) -> Self {
        ParseHeaders(options, PhantomData)
    }
}

impl<B: BatchFormat> ParseHeaders<B> {
    fn is_valid(&self, cursor: Cursor<'_>) -> bool {
        let mut log = FailFast::new(OnLoss::Raise);
        <B::Message as MessageFormat>::Headers::parse(cursor, self.0, &mut log, &mut Discard).is_ok()
    }
}

impl<B: BatchFormat> MessageReceiver for ParseHeaders<B> {
    type Batch = B;
    type Held<'a> = ();

    fn message<'a>(
        &mut self,
        _: &mut (),
        fields: &FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        self.0.limits.check_message(message_len(fields, headers), log)?;
        if interrupt::is_requested() {
            return Err(Stop);
        }
        if let Some(cursor) = headers
            && (log.has_labels() || !self.is_valid(cursor))
        {
            // The result is not needed, because the batch continues after broken headers.
            let _ = (B::INFO.parse_headers)(cursor, self.0, log.either(), AnySink(&mut Discard));
        }
        log.enter_header(None);
        Ok(())
    }

    fn unreadable(&mut self, _: &mut (), log: &mut CollectErrors) -> Result {
        log.enter_header(None);
        self.0.limits.check_message(0, log)
    }
}

/// Replaces labels beyond the limit by one label for the rest.
fn truncate_labels(mut labels: Vec<Label>, len: usize, limit: usize) -> Vec<Label> {
    let max_labels = limit.max(MIN_REPORTS);
    if labels.len() > max_labels {
        let start = labels[max_labels - 1].start;
        labels.truncate(max_labels - 1);
        labels.push(Label::left_out(start, len, limit));
    }
    labels
}

/// Sorts labels by offset, and adds labels for the bytes between them.
fn without_gaps(mut labels: Vec<Label>, len: usize) -> Vec<Label> {
    labels.sort_by_key(|label| label.start);
    let gap = |start, end| Label { start, end, field: NOT_READ, header: None, text: String::new() };
    let mut whole = Vec::new();
    let mut end = 0;
    for label in labels {
        if label.start > end {
            whole.push(gap(end, label.start));
        }
        end = label.end;
        whole.push(label);
    }
    if end < len {
        whole.push(gap(end, len));
    }
    whole
}
