//! [`decode`] appends the headers of a block of rows to the columns of a list; [`decode_and_select`] also selects from
//! them.

use std::marker::PhantomData;

use super::bitmap::Validity;
use super::buffer::{BinaryValues, Progress, Utf8, ValueWriter, Values, Writer};
use super::layout::{HeaderVisitor, IgnoreHeaders, Layout, RawHeader, WireLayout, for_each_header};
use super::scan::{RowVisitor, SelectHeaders, SelectedValues};
use super::{RowBlock, copy, dispatch, keys};
use crate::number::offset;
use crate::value_type::{MAX_NAME_LEN, ValueType};

/// The columns of a list of headers.
pub struct ListColumns<'o, V = BinaryValues> {
    pub keys: KeyColumns<'o>,
    /// The types of values, in layouts that have them.
    pub types: Option<&'o mut Utf8<BinaryValues>>,
    pub values: &'o mut V,
    pub has_value: &'o mut Validity,
    /// End of the list of each row. The list of a row without a message is empty.
    pub ends: &'o mut Vec<i32>,
}

/// The columns of keys.
pub enum KeyColumns<'o> {
    Text(&'o mut Utf8<BinaryValues>),
    /// The names of the types of keys, in layouts that have them, and the keys.
    Typed(&'o mut Utf8<BinaryValues>, &'o mut BinaryValues),
}

/// Maximum number of bytes that decoding this many input bytes appends to one column.
pub fn max_bytes(layout: Layout, input: usize) -> usize {
    if layout.typed { input.max((input / layout.min_len).saturating_mul(MAX_NAME_LEN)) } else { input }
}

dispatch! {
    /// Decodes rows up to the first that is unreadable or has more than `limit` headers, and returns the number of
    /// decoded rows.
    pub fn decode<F: WireLayout, V: Values>(block: &RowBlock<'_>, limit: usize, progress: Progress, out: &mut ListColumns<'_, V>) -> usize {
        // SAFETY: the visitor keeps nothing.
        unsafe { decode_block::<F, V, _>(block, limit, progress, out, &mut IgnoreHeaders) }
    }
}

dispatch! {
    /// Like `decode`, but also collects the values of the requested keys in `selected`, which must be empty. These may
    /// include values of rows that were not decoded.
    pub fn decode_and_select<'a, F: WireLayout, V: Values>(
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
        out: &mut ListColumns<'_, V>,
        keys: &keys::KeySet,
        selected: &mut SelectedValues<'a>,
    ) -> usize {
        // SAFETY: the visitor keeps values in memory that grows.
        unsafe { decode_block::<F, V, _>(block, limit, progress, out, &mut SelectHeaders::<F>::new(keys, selected)) }
    }
}

/// # Safety
///
/// `also` was created for this block, and needs only calls of `header`.
#[inline(always)]
unsafe fn decode_block<'a, F: WireLayout, V: Values, S: RowVisitor<'a>>(
    block: &RowBlock<'a>,
    limit: usize,
    progress: Progress,
    out: &mut ListColumns<'_, V>,
    also: &mut S,
) -> usize {
    let (key_types, keys) = match (&mut out.keys, F::TYPED_KEYS) {
        (KeyColumns::Text(keys), false) => (None, &mut keys.0),
        (KeyColumns::Typed(types, keys), true) => (Some(&mut types.0), &mut **keys),
        _ => return 0,
    };
    let types = out.types.as_mut().filter(|_| F::TYPED);
    let (first_key, first_row) = (keys.count(), out.ends.len());
    let bytes = block.byte_len();
    let headers = bytes / F::MIN_LEN;
    let names = headers.saturating_mul(MAX_NAME_LEN);
    out.has_value.reserve(headers);
    progress.reserve(out.ends, block.rows().len());
    let mut done = block.rows().len();
    {
        let mut to = AppendHeaders {
            key_types: key_types.map(|column| column.writer(headers, names, progress)),
            keys: keys.writer(headers, bytes, progress),
            types: types.map(|column| column.0.writer(headers, names, progress)),
            values: out.values.writer(headers, bytes, progress),
            has_value: out.has_value,
            row: 0,
            also,
            bytes: PhantomData::<(&'a [u8], F)>,
        };
        for (index, row) in block.rows().iter().enumerate() {
            to.row = index;
            if let Some(row) = row {
                // SAFETY: the row has `SLACK` bytes after it. A header takes `MIN_LEN` bytes of its row at least, and
                // contains its key and value, so that the writers were made for all headers of the block; each name
                // takes `MAX_NAME_LEN` bytes at most. The caller's contract.
                let is_whole = unsafe {
                    F::begin(row.start(), row.len())
                        .is_some_and(|begin| for_each_header::<F, _>(*row, begin, limit, &mut to))
                };
                if !is_whole {
                    done = index;
                    break;
                }
            }
            out.ends.push(offset(to.values.count()));
        }
    }
    out.has_value.set_count(out.values.count());
    if done < block.rows().len() {
        // Some headers of the unreadable row may have been appended.
        out.truncate(first_row + done);
    }
    if let KeyColumns::Text(keys) = &out.keys
        && let Some(key) = keys.first_not_text(first_key)
    {
        // The first row that ends after this key; rows before it are complete.
        done = out.ends[first_row..].partition_point(|end| *end as usize <= key);
        out.truncate(first_row + done);
        // The column must contain only text, even if the ends are wrong.
        if let KeyColumns::Text(keys) = &mut out.keys {
            keys.truncate(key);
        }
    }
    done
}

impl<V: Values> ListColumns<'_, V> {
    /// Truncates to this many rows.
    fn truncate(&mut self, ends: usize) {
        self.ends.truncate(ends);
        let headers = self.ends.last().map_or(0, |end| *end as usize);
        match &mut self.keys {
            KeyColumns::Text(keys) => keys.truncate(headers),
            KeyColumns::Typed(types, keys) => {
                types.truncate(headers);
                keys.truncate(headers);
            }
        }
        if let Some(types) = &mut self.types {
            types.truncate(headers);
        }
        self.values.truncate(headers);
        self.has_value.truncate(headers);
    }
}

struct AppendHeaders<'w, 's, 'a, F, W, S> {
    key_types: Option<Writer<'w>>,
    keys: Writer<'w>,
    types: Option<Writer<'w>>,
    values: W,
    has_value: &'w mut Validity,
    /// Index of the row in the block.
    row: usize,
    /// Visitor of each header before it is appended, which may reject it.
    also: &'s mut S,
    bytes: PhantomData<(&'a [u8], F)>,
}

impl<'a, F: WireLayout, W: ValueWriter, S: RowVisitor<'a>> HeaderVisitor for AppendHeaders<'_, '_, 'a, F, W, S> {
    #[inline(always)]
    unsafe fn short(&mut self, key: *const u8, key_len: usize, value: *const u8, value_len: usize, null: bool) -> bool {
        let header = RawHeader::untyped(key, key_len, value, value_len, null);
        // SAFETY: `SLACK` bytes follow the row, whose bytes live for `'a`; the writers were made for its headers.
        unsafe {
            if !self.also.header(self.row, header) {
                return false;
            }
            copy(key, self.keys.end());
            if null {
                self.has_value.clear(self.values.count());
                self.values.push_empty();
            } else {
                self.values.push_short(value, value_len);
            }
            self.keys.end_value(key_len);
        }
        true
    }

    #[inline(always)]
    unsafe fn long(&mut self, header: RawHeader) -> bool {
        // SAFETY: as above: copies may read and write up to 63 bytes after a key or value, which are reserved.
        unsafe {
            if !self.also.header(self.row, header) {
                return false;
            }
            // Without these constant conditions, layouts without types would keep the writers of names in registers.
            if F::TYPED_KEYS {
                push_name(&mut self.key_types, header.key_type);
            }
            if F::TYPED {
                push_name(&mut self.types, header.value_type);
            }
            append::<F>(header.key, header.key_len, header.key_type, &mut self.keys);
            if header.is_null {
                self.has_value.clear(self.values.count());
            }
            append::<F>(header.value, header.value_len, header.value_type, &mut self.values);
        }
        true
    }
}

/// Appends the name of a type.
///
/// # Safety
///
/// The writer was made for this name.
#[inline(always)]
unsafe fn push_name(names: &mut Option<Writer<'_>>, value_type: Option<ValueType>) {
    if let (Some(names), Some(value_type)) = (names, value_type) {
        // SAFETY: the caller's contract; a name has `MAX_NAME_LEN` bytes at most.
        unsafe { names.push_padded(value_type.padded_name()) };
    }
}

/// Appends a key or value, numbers in big-endian order.
///
/// # Safety
///
/// The writer was made for this key or value, which is readable, with `COPY` bytes after it.
#[inline(always)]
unsafe fn append<F: WireLayout>(from: *const u8, len: usize, value_type: Option<ValueType>, to: &mut impl ValueWriter) {
    // SAFETY: the caller's contract; a number has between 1 and 16 bytes.
    unsafe {
        if F::TYPED && value_type.and_then(ValueType::width).is_some() {
            to.push_reversed(from, len);
        } else {
            to.push_long(from, len);
        }
    }
}
