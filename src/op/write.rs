//! [`Writer`] gathers headers, adapts them to the target, and writes them, for single messages and for columns.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use super::adapt;
use crate::encoding::{Encoding, decode_value, encode_value, is_other_nan};
use crate::error::{Code, Direction, Error, Loss};
use crate::field::FieldValue;
use crate::format_info::{Contents, Encoded, FormatInfo};
use crate::header::{Header, Key, KeyForm, RequestedKey, Text};
use crate::kernel::recycle;
use crate::limits::Limits;
use crate::log::{CollectErrors, FailFast, Log, OnLoss, Result};
use crate::memory;
use crate::options::WriteOptions;
use crate::sink::{Presence, Sink};
use crate::type_option::{EncodedType, TypeOption};
use crate::value::{ByteOrder, Checks, HALF_PAIR, InvalidValue, bits_of};
use crate::value_type::{Scalar, ValueType};

/// Source of the headers of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub order: ByteOrder,
    pub keys: KeyForm,
    /// Encode or convert: an invalid value is an error when encoding, and a loss when converting.
    pub direction: Direction,
}

impl Origin {
    /// Headers from the user, whose typed values are big-endian bytes.
    pub const USER: Origin = Origin { order: ByteOrder::Big, keys: KeyForm::Text, direction: Direction::Encode };
}

/// The type option that restores the type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeHint {
    pub key: RequestedKey,
    /// The value of the option.
    pub value_type: String,
    pub lost: bool,
}

/// Gathers a message and writes it in a format.
pub struct Writer<'a> {
    target: &'static FormatInfo,
    options: WriteOptions,
    origin: Origin,
    /// Type for values without one.
    default_type: Option<ValueType>,
    headers: Vec<Header<'a>>,
    /// Consecutive values in another encoding, with the index of the header and the range of each.
    encoded: Vec<u8>,
    encoded_ranges: Vec<(usize, Range<usize>)>,
    /// Reused memory for headers with encoded values.
    scratch: Vec<Header<'static>>,
    /// Number of headers so far with each key of the type option.
    occurrences: Vec<usize>,
    /// Type options that restore the types of the written values, with `OnLoss::Report`.
    pub type_hints: Vec<TypeHint>,
    /// Maximum number of type hints, and whether more were dropped.
    pub most_hints: usize,
    pub hints_left_out: bool,
    fields: Vec<FieldValue<'a>>,
}

impl<'a> Writer<'a> {
    /// Creates a writer, and rejects the options that [`check_written`] rejects.
    pub fn new(target: &'static FormatInfo, options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        check_written(target, &options)?;
        let default_type = (options.types == TypeOption::Binary).then_some(ValueType::Named(Scalar::Binary));
        Ok(Writer {
            target,
            options,
            origin,
            default_type,
            headers: Vec::new(),
            encoded: Vec::new(),
            encoded_ranges: Vec::new(),
            scratch: Vec::new(),
            occurrences: Vec::new(),
            type_hints: Vec::new(),
            most_hints: Limits::DEFAULT.reports,
            hints_left_out: false,
            fields: Vec::new(),
        })
    }

    pub fn clear(&mut self) {
        self.headers.clear();
        self.encoded.clear();
        self.encoded_ranges.clear();
        self.occurrences.clear();
        self.type_hints.clear();
        self.fields.clear();
    }

    /// Appends the message to `out`. Nothing is written on failure.
    pub fn encode<R: Log>(&mut self, headers: Presence, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        if headers == Presence::Absent && self.options.refuse_null_headers {
            let rejected = || "the list of headers is null, and nulls=\"raise\" refuses that".into();
            return Err(log.fatal(Code::NullNotCarried, None, rejected));
        }
        let has_headers_field = headers != Presence::Absent;
        let canonical = self.target.canonical.filter(|_| self.options.canonical);
        if self.encoded_ranges.is_empty() && canonical.is_none() {
            let contents = Contents { fields: &self.fields, headers: &self.headers, has_headers_field };
            return self.target.encode(contents, log, out);
        }
        let mut headers = recycle(mem::take(&mut self.scratch));
        headers.extend_from_slice(&self.headers);
        for (index, range) in &self.encoded_ranges {
            headers[*index].value = Some(&self.encoded[range.clone()]);
        }
        if let Some(compare) = canonical {
            headers.sort_by(compare);
        }
        let contents = Contents { fields: &self.fields, headers: &headers, has_headers_field };
        let done = self.target.encode(contents, log, out);
        self.scratch = recycle(headers);
        done
    }

    fn remember(&mut self, key: &Key<'_>, value_type: impl FnOnce() -> String, lost: bool) {
        if self.options.on_loss == OnLoss::Report && self.type_hints.len() >= self.most_hints {
            self.hints_left_out = true;
        } else if self.options.on_loss == OnLoss::Report {
            self.type_hints.push(TypeHint { key: key.into(), value_type: value_type(), lost });
        }
    }

    /// Converts a value whose type or encoding changes; `None` if its header is dropped.
    fn retype<R: Log>(
        &mut self,
        header: &mut Header<'a>,
        source: Option<Key<'a>>,
        bytes: &'a [u8],
        log: &mut R,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let bits = match header.value_type {
            Some(value_type) => bits_of(value_type, bytes, self.origin.order),
            None => Cow::Borrowed(bytes),
        };
        if !self.target.types.is_typed() {
            return self.without_type(header, bits, log);
        }
        let source = source.unwrap_or_else(|| header.key.clone());
        let Some((value_type, bits)) = self.with_requested_type(header, &source, bits, log)? else { return Ok(None) };
        let Some(RetypedValue { value_type, bits, original }) =
            self.with_supported_type(header, value_type, bits, log)?
        else {
            return Ok(None);
        };
        if let Err(invalid) = self.target.constraints.checks.check(value_type, &bits) {
            return self.invalid(header, *invalid, log);
        }
        if self.target.constraints.fits(bits.len()) {
            let is_lost = original.is_some();
            self.remember(&header.key, || original.unwrap_or_else(|| value_type.name().into_owned()), is_lost);
        }
        header.value_type = Some(value_type);
        Ok(Some(bits))
    }

    /// Converts a value for an untyped format.
    fn without_type<R: Log>(
        &mut self,
        header: &mut Header<'a>,
        bits: Cow<'a, [u8]>,
        log: &mut R,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let Some(value_type) = header.value_type.take() else { return Ok(Some(bits)) };
        let TypeOption::Untyped(encoding) = self.options.types else {
            let how = "pass types=\"be\", \"le\" or \"text\" (--types be)";
            let message =
                || format!("{} carries no types: {how} to write {} values", self.target.name, value_type.name());
            return drop_header(header, Code::TypeNotCarried, message, log);
        };
        // Only valid bits can be restored to their type.
        let is_value = Checks::Value.check(value_type, &bits);
        let written = match is_value.and_then(|()| reencode(&bits, |bits| encode_value(value_type, bits, encoding))) {
            Ok(written) => written,
            Err(invalid) => return self.invalid(header, *invalid, log),
        };
        // All NaNs have the same text, so only one of them is restored exactly.
        let comes_back = encoding != Encoding::Text || !is_other_nan(value_type, &bits);
        let original = || EncodedType { value_type, encoding }.name();
        log.loss(true, || Loss {
            value_type: comes_back.then(original),
            written: Some(encoding_name(value_type, encoding)),
            ..type_lost(header, value_type)
        })?;
        if self.target.constraints.fits(written.len()) {
            self.remember(&header.key, original, true);
        }
        Ok(Some(written))
    }

    /// Converts a value to the type that the options request, or keeps the value's own type.
    fn with_requested_type<R: Log>(
        &mut self,
        header: &Header<'a>,
        source: &Key<'a>,
        bits: Cow<'a, [u8]>,
        log: &mut R,
    ) -> Result<Option<(ValueType, Cow<'a, [u8]>)>> {
        let requested = self.options.types.next_type([source, &header.key], &mut self.occurrences);
        match (requested, header.value_type) {
            (Some(requested), Some(value_type)) if value_type == requested.value_type => Ok(Some((value_type, bits))),
            (Some(requested), None | Some(ValueType::Named(Scalar::Binary | Scalar::String))) => {
                match reencode(&bits, |bits| decode_value(requested.value_type, bits, requested.encoding)) {
                    Ok(bits) => Ok(Some((requested.value_type, bits))),
                    Err(invalid) => drop_header(header, invalid.code, || invalid.message, log),
                }
            }
            (Some(requested), Some(value_type)) => {
                let requested = requested.value_type.name();
                let message = || format!("the value is {} and {requested} was requested", value_type.name());
                drop_header(header, Code::WrongType, message, log)
            }
            (None, Some(value_type)) => Ok(Some((value_type, bits))),
            (None, None) if self.options.types == TypeOption::Binary => {
                Ok(Some((ValueType::Named(Scalar::Binary), bits)))
            }
            (None, None) => {
                let how =
                    "pass types={\"retry\": \"int32\"} (--types retry=int32) or types=\"binary\" (--types binary)";
                drop_header(
                    header,
                    Code::UnknownType,
                    || format!("{} values need a type: {how}", self.target.name),
                    log,
                )
            }
        }
    }

    /// Converts a value to a type that the format supports.
    fn with_supported_type<R: Log>(
        &self,
        header: &Header<'a>,
        value_type: ValueType,
        bits: Cow<'a, [u8]>,
        log: &mut R,
    ) -> Result<Option<RetypedValue<'a>>> {
        if self.target.types.code(value_type).is_some() {
            return Ok(Some(RetypedValue { value_type, bits, original: None }));
        }
        if let Err(invalid) = Checks::Value.check(value_type, &bits) {
            return self.invalid(header, *invalid, log);
        }
        let Some((scalar, bits, encoding)) = adapt::substitute(value_type, bits) else {
            return drop_header(header, Code::OutOfRange, || HALF_PAIR.into(), log);
        };
        let original = EncodedType { value_type, encoding }.name();
        log.loss(false, || Loss {
            value_type: Some(original.clone()),
            written: Some(scalar.name()),
            ..type_lost(header, value_type)
        })?;
        Ok(Some(RetypedValue { value_type: ValueType::Named(scalar), bits, original: Some(original) }))
    }

    /// Reports bits that are not a value of their type.
    #[cold]
    fn invalid<T, R: Log>(&self, header: &Header<'a>, invalid: InvalidValue, log: &mut R) -> Result<Option<T>> {
        match self.origin.direction {
            Direction::Convert => drop_header(header, invalid.code, || invalid.message, log),
            _ => log.error(invalid.code, None, || invalid.message).map(|()| None),
        }
    }
}

/// Rejects a read-only format, and options that do not apply to a format.
pub fn check_written(format: &FormatInfo, options: &WriteOptions) -> Result<(), Error> {
    check_target(format)?;
    if options.canonical && format.canonical.is_none() {
        return Err(Error::Value(format!("canonical=True: {} has no order of its own for headers", format.name)));
    }
    options.types.check(format.name, format.types)
}

/// Rejects a read-only format.
pub fn check_target(format: &FormatInfo) -> Result<(), Error> {
    match format.is_target {
        true => Ok(()),
        false => {
            Err(Error::Value(format!("{} reads either layout and is no target: name iggy or iggy-2023", format.name)))
        }
    }
}

/// Value with a type that its format supports, and the type option that restores its original type if that differs.
struct RetypedValue<'a> {
    value_type: ValueType,
    bits: Cow<'a, [u8]>,
    original: Option<String>,
}

/// Reports the loss of a header, which is dropped.
#[cold]
fn drop_header<T, R: Log>(
    header: &Header<'_>,
    code: Code,
    message: impl FnOnce() -> String,
    log: &mut R,
) -> Result<Option<T>> {
    log.loss(false, || adapt::lost(header.index, &header.key, code, message())).map(|()| None)
}

fn type_lost(header: &Header<'_>, value_type: ValueType) -> Loss {
    let message = format!("the type {} is not carried", value_type.name());
    adapt::lost(header.index, &header.key, Code::TypeNotCarried, message)
}

/// Converts bits to another encoding; borrowed bits stay borrowed.
fn reencode<'a>(
    bits: &Cow<'a, [u8]>,
    encode: impl for<'b> Fn(&'b [u8]) -> Result<Cow<'b, [u8]>, Box<InvalidValue>>,
) -> Result<Cow<'a, [u8]>, Box<InvalidValue>> {
    match bits {
        Cow::Borrowed(bits) => encode(bits),
        Cow::Owned(bits) => encode(bits).map(|written| Cow::Owned(written.into_owned())),
    }
}

/// Describes how a value whose type is lost was written.
fn encoding_name(value_type: ValueType, encoding: Encoding) -> &'static str {
    match (value_type.width(), encoding) {
        (None, _) => "as it is",
        (_, Encoding::Bytes(ByteOrder::Big)) => "big-endian",
        (_, Encoding::Bytes(ByteOrder::Little)) => "little-endian",
        (_, Encoding::Text) => "text",
    }
}

impl<'a> Writer<'a> {
    /// Whether a header can be written unchanged, the common case.
    #[inline(always)]
    fn is_plain(&self, header: &Header<'a>) -> bool {
        if self.options.on_loss == OnLoss::Report {
            return false; // the report contains the type of every value
        }
        let &FormatInfo { keys, types, constraints, .. } = self.target;
        let fits = |len: usize| constraints.fits(len);
        let value_fits = match (header.value, header.value_type) {
            (None, None) => constraints.nulls,
            (Some(value), None) => !types.is_typed() && fits(value.len()),
            // The bytes are the same in every encoding, and the caller has accepted the loss of the type.
            (Some(value), Some(ValueType::Named(scalar @ (Scalar::String | Scalar::Binary))))
                if matches!(self.options.types, TypeOption::Untyped(_)) =>
            {
                fits(value.len()) && (scalar == Scalar::Binary || Text::new(value).is_ok())
            }
            (Some(_), Some(_)) if !types.is_typed() => false,
            (Some(value), Some(value_type)) => {
                let turned = self.origin.order == ByteOrder::Little && value_type.width().is_some();
                types.code(value_type).is_some()
                    && !turned
                    && !matches!(self.options.types, TypeOption::ByKey(_))
                    && fits(value.len())
                    && constraints.checks.check(value_type, value).is_ok()
            }
            (None, Some(_)) => false,
        };
        value_fits
            && adapt::is_key_of(keys, types, &header.key)
            && fits(header.key.byte_len())
            && !matches!(&header.key, Key::Typed(typed) if typed.check(constraints.checks).is_err())
    }

    /// Adapts a header that the target cannot hold unchanged.
    #[inline(never)]
    fn adapt_header<R: Log>(&mut self, mut header: Header<'a>, log: &mut R) -> Result {
        let source = match adapt::is_key_of(self.target.keys, self.target.types, &header.key) {
            true => None,
            false => {
                let Some(key) = adapt::key_for(self.target.keys, self.origin.keys, &header, log)? else {
                    return Ok(());
                };
                Some(std::mem::replace(&mut header.key, key))
            }
        };
        let constraints = self.target.constraints;
        if !adapt::part_fits(constraints, "key", &header, header.key.byte_len(), log)? {
            return Ok(());
        }
        if let Key::Typed(typed) = header.key
            && let Err(mut invalid) = typed.check(constraints.checks)
        {
            invalid.message = format!("key of {}", invalid.message);
            return self.invalid::<(), R>(&header, *invalid, log).map(|_| ());
        }
        match header.value {
            None if constraints.nulls => header.value_type = None,
            None => {
                let lost = || adapt::lost(header.index, &header.key, Code::NullNotCarried, "the value is null".into());
                return log.loss(false, lost);
            }
            Some(bytes) if header.value_type.is_some() || self.target.types.is_typed() => {
                let Some(bits) = self.retype(&mut header, source, bytes, log)? else { return Ok(()) };
                if !adapt::part_fits(constraints, "value", &header, bits.len(), log)? {
                    return Ok(());
                }
                match bits {
                    Cow::Borrowed(bits) => header.value = Some(bits),
                    Cow::Owned(bits) => {
                        let start = self.encoded.len();
                        memory::extend(&mut self.encoded, &bits);
                        self.encoded_ranges.push((self.headers.len(), start..self.encoded.len()));
                    }
                }
            }
            Some(bytes) => {
                if !adapt::part_fits(constraints, "value", &header, bytes.len(), log)? {
                    return Ok(());
                }
            }
        }
        memory::push(&mut self.headers, header);
        Ok(())
    }
}

impl<'a> Sink<'a> for Writer<'a> {
    #[inline]
    fn header<R: Log>(&mut self, mut header: Header<'a>, log: &mut R) -> Result {
        if let Key::Typed(typed) = header.key
            && self.target.keys == KeyForm::Text
            && let Some(Ok(text)) = typed.string().map(Text::new)
        {
            // In a format with text keys, write a typed string key as plain text.
            header.key = Key::Text(text);
        }
        let original_type = header.value_type;
        if header.value.is_some() {
            header.value_type = original_type.or(self.default_type);
        }
        if !self.is_plain(&header) {
            header.value_type = original_type;
            return self.adapt_header(header, log);
        }
        memory::push(&mut self.headers, header);
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}

/// Encodes one message; `None` if the format writes no bytes for it.
pub struct EncodeMessage<'a> {
    pub headers: Option<Vec<Header<'a>>>,
    /// Fields in the order of the format's table, without the headers.
    pub fields: Vec<FieldValue<'a>>,
    pub options: WriteOptions,
}

impl EncodeMessage<'_> {
    fn write<R: Log>(&self, target: &'static FormatInfo, log: &mut R) -> Result<Result<Option<Vec<u8>>>, Error> {
        let mut writer = Writer::new(target, self.options.clone(), Origin::USER)?;
        let presence = if self.headers.is_some() { Presence::Whole } else { Presence::Absent };
        writer.fields(&self.fields);
        writer.headers.reserve(self.headers.as_ref().map_or(0, Vec::len));
        let gathered = self.headers.iter().flatten().try_for_each(|header| {
            log.enter_header(Some(header.index));
            log.name_header(&header.key);
            writer.header(header.clone(), log)
        });
        log.enter_header(None);
        let mut out = Vec::new();
        let done = gathered.and_then(|()| writer.encode(presence, log, &mut out));
        Ok(done.map(|done| (done == Encoded::Message).then_some(out)))
    }
}

impl EncodeMessage<'_> {
    pub fn encode(&self, target: &'static FormatInfo) -> Result<Option<Vec<u8>>, Error> {
        super::check_not_batch(target)?;
        // Nearly every message can be written. Errors of the others are collected in a second pass.
        if let Ok(written) = self.write(target, &mut FailFast::new(self.options.on_loss))? {
            return Ok(written);
        }
        let mut log = CollectErrors::new(self.options.on_loss, Limits::DEFAULT.reports);
        let written = self.write(target, &mut log)?;
        let written = log.finish_parse(written, Direction::Encode, target.name)?;
        log.reject_losses(target.name)?;
        Ok(written)
    }
}
