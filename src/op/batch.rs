//! [`write`] encodes messages as one batch.

use crate::codec::Codec;
use crate::error::{Direction, Error, ErrorDetail};
use crate::formats::batch::Builder;
use crate::op::write::EncodeMessage;
use crate::traits::{BatchFormat, MessageFormat as _};

/// Writes messages as one batch, or returns the first error with the index of its message.
pub fn write<B: Builder>(messages: Vec<EncodeMessage<'_>>, codec: Codec) -> Result<Vec<u8>, Error> {
    let name = B::Batch::NAME;
    if !B::CODECS.contains(&codec) {
        let known: Vec<_> = B::CODECS.iter().map(|codec| codec.name()).collect();
        let (codec, known) = (codec.name(), known.join(", "));
        return Err(Error::Value(format!("{name} has no codec {codec}: choose one of {known}")));
    }
    let Some(first) = messages.first() else {
        return Err(Error::Value(format!("{name} needs at least one message")));
    };
    let rejected = |error: ErrorDetail| error.into_error(Direction::Encode, name, None);
    let mut batch = B::new(&first.fields, codec).map_err(rejected)?;
    for (row, mut message) in messages.into_iter().enumerate() {
        let prepared = batch.prepare(&mut message.fields).map_err(rejected);
        let bytes = prepared.and_then(|()| message.encode(&<B::Batch as BatchFormat>::Message::INFO));
        batch.push(&bytes.map_err(|error| error.in_row(Some(row)))?.unwrap_or_default());
    }
    batch.finish().map_err(rejected)
}
