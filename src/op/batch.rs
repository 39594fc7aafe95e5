//! [`write`] encodes messages as one batch.

use crate::codec::Codec;
use crate::error::{Direction, Error, ErrorDetail};
use crate::format::Format;
use crate::format_info::FormatInfo;
use crate::formats::batch::Builder;
use crate::formats::batch::message_set_writer::{self, MessageSetBuilder};
use crate::formats::batch::record_batch::Record;
use crate::formats::batch::record_batch_writer::RecordBatchBuilder;
use crate::formats::message::kip82_message::{Int, Kip82Message, Typed, Wrapped};
use crate::op::write::EncodeMessage;
use crate::traits::MessageFormat as _;

/// Writes messages as one batch, or returns the first error with the index of its message.
pub fn write(format: Format, messages: Vec<EncodeMessage<'_>>, codec: Codec) -> Result<Vec<u8>, Error> {
    let name = format.info().name;
    let (message_format, codecs): (&'static FormatInfo, &[Codec]) = match format {
        Format::RecordBatch => (&Record::INFO, &Codec::ALL),
        Format::Kip82Messages => (&Kip82Message::<Typed>::INFO, &message_set_writer::CODECS),
        Format::Kip82MessagesInt => (&Kip82Message::<Int>::INFO, &message_set_writer::CODECS),
        Format::Kip82MessagesWrapper => (&Kip82Message::<Wrapped>::INFO, &message_set_writer::CODECS),
        _ => return Err(Error::Value(format!("{name} is read only"))),
    };
    if !codecs.contains(&codec) {
        let known: Vec<_> = codecs.iter().map(|codec| codec.name()).collect();
        let (codec, known) = (codec.name(), known.join(", "));
        return Err(Error::Value(format!("{name} has no codec {codec}: choose one of {known}")));
    }
    let Some(EncodeMessage { fields: first, .. }) = messages.first() else {
        return Err(Error::Value(format!("{name} needs at least one message")));
    };
    let rejected = |error: ErrorDetail| error.into_error(Direction::Encode, name, None);
    let batch: &mut dyn Builder = match format {
        Format::RecordBatch => &mut RecordBatchBuilder::new(first, codec).map_err(rejected)?,
        _ => &mut MessageSetBuilder::new(message_format, first, codec),
    };
    for (row, mut message) in messages.into_iter().enumerate() {
        let prepared = batch.prepare(&mut message.fields).map_err(rejected);
        let bytes = prepared.and_then(|()| message.encode(message_format));
        batch.push(&bytes.map_err(|error| error.in_row(Some(row)))?.unwrap_or_default());
    }
    batch.finish().map_err(rejected)
}
