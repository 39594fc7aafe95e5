//! Random messages, serialized in every format, either valid or with a few changed bytes.

use letterhead::codec::{Codec, compress};
use letterhead::encoding::Encoding;
use letterhead::field::{FieldType, Role};
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::formats::checksum::crc32;
use letterhead::log::OnLoss;
use letterhead::options::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::value::ByteOrder;
use letterhead::value_type::{Scalar, TypeCodes, ValueType};
use letterhead::varint;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::common::{Head, Held, HeldKey, Message, other_fields, write};
use crate::sealing::{seal, seal_frames, seal_record_batches};

/// Content of a message, from which the fields of any format are taken.
#[derive(Debug, Clone)]
pub struct Parts {
    pub heads: Vec<Head>,
    key: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
    offset: i32,
    millis: i32,
    id: [u8; 16],
    checksum: u64,
    magic: Option<u8>,
    appended: bool,
    tombstone: bool,
}

impl Parts {
    /// Microseconds, which are whole milliseconds unless `appended` is set.
    fn micros(&self) -> u64 {
        u64::from(self.millis.unsigned_abs()) * 1000 + if self.appended { 7 } else { 0 }
    }

    pub fn message(&self, format: Format) -> Message {
        let bytes = |bytes: &Option<Vec<u8>>| bytes.clone().map_or(Held::Null, Held::Bytes);
        let held = |field: &letterhead::field::Field| match (field.role, field.field_type) {
            (Role::Key, _) => bytes(&self.key),
            (Role::Value | Role::StoredValue, _) => bytes(&self.payload),
            (Role::Offset, FieldType::Natural) => Held::Number(self.offset.unsigned_abs().into()),
            (Role::Offset, _) => Held::Number(self.offset.into()),
            (Role::Millis, _) => Held::Number(self.millis.into()),
            (Role::Micros | Role::Origin, _) => Held::Number(self.micros().into()),
            (Role::Id, _) => Held::Bytes(self.id.to_vec()),
            (Role::Magic, _) => self.magic.map_or(Held::Null, |magic| Held::Number(magic.into())),
            (Role::Attributes, _) => Held::Number(if self.appended && self.magic != Some(0) { 8 } else { 0 }),
            (Role::Tombstone, _) => Held::Bool(self.tombstone),
            (Role::Derived, FieldType::Uint64) => Held::Number(self.checksum.into()),
            _ => Held::Null,
        };
        Message { headers: Some(self.heads.clone()), fields: other_fields(format).map(held).collect() }
    }
}

/// Framing of the messages of a batch.
#[derive(Debug, Clone)]
pub struct Frame {
    codec: Codec,
    magic: u8,
    with_state: bool,
    prefix: usize,
    in_two: bool,
}

/// One change to bytes.
#[derive(Debug, Clone)]
enum Edit {
    Set(Index, u8),
    Turn(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index),
    Cut(Index),
}

/// Messages, their framing, and the changes to the serialized bytes.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub messages: Vec<Parts>,
    frame: Frame,
    edits: Vec<Edit>,
    resealed: bool,
}

impl Recipe {
    /// A valid value; for a format that is not a batch, it contains the first message.
    pub fn whole(&self, format: Format) -> Vec<u8> {
        match format {
            Format::IggyAuto if self.frame.with_state => self.whole(Format::Iggy2023),
            Format::IggyAuto => self.whole(Format::Iggy),
            Format::Kip82Messages => message_set(&self.messages, &self.frame, Format::Kip82Message),
            Format::Kip82MessagesInt => message_set(&self.messages, &self.frame, Format::Kip82MessageInt),
            Format::Kip82MessagesWrapper => message_set(&self.messages, &self.frame, Format::Kip82MessageWrapper),
            Format::IggyPolled2023 => polled(&self.messages, &self.frame),
            Format::IggyBatch => batches(&self.messages, &self.frame),
            Format::RecordBatch => record_batches(&self.messages, &self.frame),
            one => serialized(&self.messages[0].message(one), one),
        }
    }

    /// A valid value that may follow another value of the same format: it has no poll prefix, and the same era as the
    /// first.
    pub fn second_of_two(&self, format: Format, first: &Recipe) -> Vec<u8> {
        let frame = Frame { prefix: 0, with_state: first.frame.with_state, ..self.frame.clone() };
        Recipe { frame, ..self.clone() }.whole(format)
    }

    /// A value with the changes applied. With `resealed`, checksums and sizes are corrected after the changes.
    pub fn near(&self, format: Format) -> Vec<u8> {
        let mut serialized = self.whole(format);
        for edit in &self.edits {
            edit.apply(&mut serialized);
        }
        if self.resealed {
            seal(format, &mut serialized);
        }
        serialized
    }
}

impl Edit {
    fn apply(&self, serialized: &mut Vec<u8>) {
        match self {
            Edit::Insert(place, bytes) => {
                let place = place.index(serialized.len() + 1);
                serialized.splice(place..place, bytes.iter().copied());
            }
            _ if serialized.is_empty() => {}
            Edit::Set(place, byte) => *place.get_mut(serialized) = *byte,
            Edit::Turn(place, bit) => *place.get_mut(serialized) ^= 1 << bit,
            Edit::Remove(place) => drop(serialized.remove(place.index(serialized.len()))),
            Edit::Cut(place) => serialized.truncate(place.index(serialized.len())),
        }
    }
}

/// Type option for tests that do not depend on the option.
pub fn kinds_for(format: Format) -> TypeOption {
    match format.info().types {
        TypeCodes::None => TypeOption::Untyped(Encoding::Bytes(ByteOrder::Big)),
        _ => TypeOption::Binary,
    }
}

/// Serializes the data of a message that the format supports; no bytes if the format writes none.
fn serialized(message: &Message, format: Format) -> Vec<u8> {
    let options = WriteOptions { on_loss: OnLoss::Drop, types: kinds_for(format), ..WriteOptions::default() };
    write(format, message, options).expect("whole messages are written").unwrap_or_default()
}

/// A message set; with a codec, one message that contains the compressed set.
fn message_set(messages: &[Parts], frame: &Frame, one: Format) -> Vec<u8> {
    let messages: Vec<_> = messages.iter().map(|parts| parts.message(one)).collect();
    if frame.codec == Codec::None {
        return messages.iter().flat_map(|message| serialized(message, one)).collect();
    }
    // Formats 0 and 1 do not support Zstandard.
    let codec = if frame.codec == Codec::Zstd { Codec::Gzip } else { frame.codec };
    let mut set = vec![];
    for (offset, mut message) in messages.into_iter().enumerate() {
        (message.fields[0], message.fields[2]) = (Held::Number(offset as i128), Held::Number(frame.magic.into()));
        if frame.magic == 0 {
            message.fields[3] = Held::Number(0);
        }
        set.extend(serialized(&message, one));
    }
    let value = compress(codec, &set).expect("memory takes it");
    let codec = Codec::ALL.iter().position(|other| *other == codec).expect("it is one of them");
    let fields = vec![
        Held::Number(1000),
        Held::Null,
        Held::Number(frame.magic.into()),
        Held::Number(codec as i128 | if frame.in_two && frame.magic > 0 { 8 } else { 0 }),
        Held::Number(1_500_000_000_000),
        Held::Null,
        Held::Bytes(value),
        Held::Null,
    ];
    serialized(&Message { headers: None, fields }, one)
}

/// Messages of `iggy-polled-2023` in one of the two eras.
fn polled(messages: &[Parts], frame: &Frame) -> Vec<u8> {
    const STATES: [u8; 4] = [1, 10, 20, 30];
    let mut out = vec![];
    for parts in messages {
        let sent = serialized(&parts.message(Format::IggyMessage2023), Format::IggyMessage2023);
        let (id, rest) = sent.split_at(16);
        out.extend(u64::from(parts.offset.unsigned_abs()).to_le_bytes());
        if frame.with_state {
            out.push(STATES[parts.heads.len() % STATES.len()]);
        }
        out.extend(parts.micros().to_le_bytes());
        out.extend(id);
        if frame.with_state {
            out.extend(crc32(parts.payload.as_deref().unwrap_or_default()).to_le_bytes());
        }
        out.extend(rest);
    }
    out
}

/// One or two batches of Iggy, after an optional poll prefix.
fn batches(messages: &[Parts], frame: &Frame) -> Vec<u8> {
    let mut out = vec![0; frame.prefix];
    let middle = if frame.in_two { messages.len() / 2 } else { 0 };
    for messages in [&messages[..middle], &messages[middle..]] {
        if messages.is_empty() {
            continue;
        }
        let mut frames = vec![];
        for (delta, parts) in (0u32..).zip(messages) {
            let block = serialized(&parts.message(Format::Iggy), Format::Iggy);
            let payload = parts.payload.as_deref().unwrap_or_default();
            frames.extend([0; 8]);
            frames.extend(parts.id);
            frames.extend([delta, delta, block.len() as u32, payload.len() as u32].map(u32::to_le_bytes).concat());
            frames.extend([0; 8]);
            frames.extend(payload);
            frames.extend(block);
        }
        let first = &messages[0];
        let times = [u64::from(first.millis.unsigned_abs()); 2];
        let numbers = [1, first.offset.unsigned_abs().into(), times[0], times[1], 0, 0];
        out.extend(numbers.map(u64::to_le_bytes).concat());
        out.extend((messages.len() as u32).to_le_bytes());
        let producer = [1, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 0, 0, 4, 4, 4, 4];
        out.extend(if frame.with_state { producer } else { [0; 20] });
        out.resize(out.len() + 256 - 72, 0);
        let len = 256 + frames.len() as u64;
        out.extend(frames);
        let start = out.len() - len as usize;
        out[start + 32..start + 40].copy_from_slice(&len.to_le_bytes());
        seal_frames(&mut out[start..]);
    }
    out
}

/// One or two record batches, transactional with a state. Sometimes a message set of an older format instead.
fn record_batches(messages: &[Parts], frame: &Frame) -> Vec<u8> {
    if frame.in_two && frame.prefix > 0 {
        let magic = frame.magic % 2;
        let old = messages.iter().map(|parts| Parts { heads: vec![], magic: Some(magic), ..parts.clone() });
        return message_set(&old.collect::<Vec<_>>(), &Frame { magic, ..frame.clone() }, Format::Kip82Message);
    }
    let mut out = vec![];
    let middle = if frame.in_two { messages.len() / 2 } else { 0 };
    for messages in [&messages[..middle], &messages[middle..]] {
        let Some(first) = messages.first() else { continue };
        let records = messages.iter().zip(0i32..).flat_map(|(parts, delta)| record(parts, delta)).collect::<Vec<_>>();
        let records = compress(frame.codec, &records).expect("memory takes it");
        let codec = Codec::ALL.iter().position(|codec| *codec == frame.codec).expect("it is one of them") as u8;
        let appended = if first.appended { 8 } else { 0 };
        let (producer, epoch, sequence) = if frame.with_state { (7i64, 1i16, i32::MAX) } else { (-1, -1, -1) };
        out.extend(i64::from(first.offset).to_be_bytes());
        out.extend((49 + records.len() as i32).to_be_bytes());
        out.extend([0, 0, 0, 0, 2, 0, 0, 0, 0, 0, codec | appended | if frame.with_state { 0x30 } else { 0 }]);
        out.extend((messages.len() as i32 - 1).to_be_bytes());
        out.extend([i64::from(first.millis), i64::from(first.millis) + 5].map(i64::to_be_bytes).concat());
        out.extend(producer.to_be_bytes());
        out.extend(epoch.to_be_bytes());
        out.extend(sequence.to_be_bytes());
        out.extend((messages.len() as i32).to_be_bytes());
        out.extend(records);
    }
    seal_record_batches(&mut out);
    out
}

fn record(parts: &Parts, delta: i32) -> Vec<u8> {
    let mut body = vec![0];
    varint::write(varint::zigzag_64(i64::from(parts.millis) >> delta), &mut body);
    varint::write(varint::zigzag(delta), &mut body);
    for run in [&parts.key, &parts.payload] {
        varint::write(varint::zigzag(run.as_ref().map_or(-1, |run| run.len() as i32)), &mut body);
        body.extend(run.as_deref().unwrap_or_default());
    }
    let block = serialized(&parts.message(Format::Kafka), Format::Kafka);
    // Record batches always have a header count.
    body.extend(if block.is_empty() { vec![0] } else { block });
    let mut out = vec![];
    varint::write_count(body.len(), &mut out);
    out.extend(body);
    out
}

/// Every type that a user can name, including some type codes without a name.
pub fn value_type() -> impl Strategy<Value = ValueType> {
    let named: Vec<_> =
        Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(|scalar| ValueType::Named(*scalar)).collect();
    prop_oneof![9 => select(named), 1 => (16u8..).prop_map(ValueType::Unnamed)]
}

/// Bytes of a value of a type.
fn value_of(value_type: ValueType) -> BoxedStrategy<Vec<u8>> {
    match (value_type, value_type.width()) {
        (ValueType::Named(Scalar::Bool), _) => vec(0u8..2, 1).boxed(),
        (ValueType::Named(Scalar::String), _) => "[a-z0-9é]{1,4}".prop_map(String::into_bytes).boxed(),
        (_, Some(width)) => vec(any::<u8>(), width).boxed(),
        (_, None) => vec(any::<u8>(), 1..6).boxed(),
    }
}

/// Keys that at least one format supports: text, numbers as text, numbers, and typed keys.
fn key() -> impl Strategy<Value = HeldKey> {
    prop_oneof![
        3 => "[a-cé]{1,3}".prop_map(HeldKey::Text),
        4 => (-2i32..3).prop_map(|number| HeldKey::Text(number.to_string())),
        2 => prop_oneof![-2i32..3, any::<i32>()].prop_map(HeldKey::Int),
        2 => value_type().prop_flat_map(|value_type| value_of(value_type).prop_map(move |bits| HeldKey::typed(value_type, &bits))),
    ]
}

/// Headers that at least one format supports.
fn head() -> impl Strategy<Value = Head> {
    let typed = value_type().prop_flat_map(|value_type| (Just(Some(value_type)), value_of(value_type).prop_map(Some)));
    let value = prop_oneof![
        4 => typed,
        2 => vec(any::<u8>(), 0..5).prop_map(|bytes| (None, Some(bytes))),
        1 => Just((None, None)),
    ];
    (key(), value).prop_map(|(key, (value_type, value))| Head { key, value_type, value })
}

pub fn parts() -> impl Strategy<Value = Parts> {
    let bytes = || option::weighted(0.8, vec(any::<u8>(), 0..6));
    let magic = option::weighted(0.5, prop_oneof![1 => Just(0u8), 1 => Just(1), 3 => Just(2)]);
    let numbers = (any::<i32>(), any::<i32>(), any::<[u8; 16]>(), any::<u64>());
    (vec(head(), 0..5), bytes(), bytes(), numbers, magic, any::<bool>(), any::<bool>()).prop_map(
        |(heads, key, payload, (offset, millis, mut id, checksum), magic, appended, tombstone)| {
            // An id that ends in zeros could make bytes of one era of Iggy valid in the other era.
            id[0] |= 1;
            Parts { heads, key, payload, offset, millis, id, checksum, magic, appended, tombstone }
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    let codec =
        select(vec![Codec::None, Codec::None, Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd]);
    (codec, 0u8..3, any::<bool>(), select(vec![0, 16, 40]), any::<bool>())
        .prop_map(|(codec, magic, with_state, prefix, in_two)| Frame { codec, magic, with_state, prefix, in_two })
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = any::<Index>;
    prop_oneof![
        2 => (place(), prop_oneof![0u8..5, any::<u8>()]).prop_map(|(place, byte)| Edit::Set(place, byte)),
        2 => (place(), 0u8..8).prop_map(|(place, bit)| Edit::Turn(place, bit)),
        1 => (place(), vec(any::<u8>(), 1..4)).prop_map(|(place, bytes)| Edit::Insert(place, bytes)),
        1 => place().prop_map(Edit::Remove),
        1 => place().prop_map(Edit::Cut),
    ]
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    (vec(parts(), 1..4), frame(), vec(edit(), 0..3), any::<bool>())
        .prop_map(|(messages, frame, edits, resealed)| Recipe { messages, frame, edits, resealed })
}

/// Any headers, including those with invalid lengths, types that do not fit, and bits that are invalid for their type.
pub fn any_head() -> impl Strategy<Value = Head> {
    let bytes = || prop_oneof![8 => vec(any::<u8>(), 0..5), 1 => vec(any::<u8>(), 255), 1 => vec(any::<u8>(), 256)];
    let bits = move || {
        value_type().prop_flat_map(move |value_type| {
            (Just(value_type), prop_oneof![3 => value_of(value_type), 1 => bytes().boxed()])
        })
    };
    let key = prop_oneof![
        2 => "[a-c+é]{0,2}".prop_map(HeldKey::Text),
        1 => select(vec![255, 256, 300]).prop_map(|len: usize| HeldKey::Text("k".repeat(len))),
        3 => "[+-]?0?[0-9]{1,10}".prop_map(HeldKey::Text),
        2 => any::<i32>().prop_map(HeldKey::Int),
        4 => bits().prop_map(|(value_type, bits)| HeldKey::Typed(value_type, bits)),
    ];
    let value = prop_oneof![
        4 => bits().prop_map(|(value_type, bits)| (Some(value_type), Some(bits))),
        2 => bytes().prop_map(|bytes| (None, Some(bytes))),
        1 => option::of(value_type()).prop_map(|value_type| (value_type, None)),
    ];
    (key, value).prop_map(|(key, (value_type, value))| Head { key, value_type, value })
}

/// Formats that operations on one message support.
pub fn formats_of_one() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| format.info().class != Class::Batch)
}

/// Formats that can be written.
pub fn targets() -> impl Iterator<Item = Format> {
    formats_of_one().filter(|format| format.info().is_target)
}
