//! One file per block. A block alone is the envelope without fields.

pub mod kafka;

use std::marker::PhantomData;

use crate::cursor::Cursor;
use crate::header::Header;
use crate::mode::{Mode, Stop};
use crate::walk::{Block, Envelope, Field, FieldType, FieldValue, Is, Opened, ReadOptions, Sealed};

/// The envelope of a block that stands alone.
pub struct Bare<B>(PhantomData<B>);

impl<B: Block> Envelope for Bare<B> {
    const NAME: &'static str = B::NAME;
    const IS: Is = Is::Block;
    const SOURCE: &'static str = B::SOURCE;
    const LAYOUT: &'static str = B::LAYOUT;
    const FIELDS: &'static [Field] = &[Field { name: "headers", of: FieldType::Headers }];

    type Block = B;
    type Fields<'a> = [FieldValue<'a>; 0];

    fn open<'a, M: Mode>(cell: &'a [u8], _: ReadOptions, _: &mut M) -> Result<Opened<'a, Self::Fields<'a>>, Stop> {
        Ok(Opened { block: Some(Cursor::new(cell)), fields: [] })
    }

    fn seal<M: Mode>(
        _fields: &[FieldValue<'_>],
        headers: &[Header<'_>],
        mode: &mut M,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, Stop> {
        out.reserve(B::encoded_len(headers, mode)?);
        B::encode_into(headers, out);
        Ok(Sealed::Written)
    }
}
