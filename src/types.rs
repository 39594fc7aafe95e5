//! The types that a user names, and what a value is read as one of them.
//!
//! ```text
//!   type     name[:be|le|text|amqp]
//!   int32    ┌──┬──┬──┬──┐  most significant byte first (`:be`, the default) or last (`:le`)
//!            └──┴──┴──┴──┘
//!   int32:text   "-42"       ASCII digits
//!   int32:amqp   71 ff ff ff d6, 54 d6   an AMQP 1.0 primitive, which says how it is written: see [`amqp`]
//! ```

use crate::amqp;
use crate::error::{Code, Error, unknown_name};
use crate::kind::{DECIMAL_PRECISION, Dialect, Kind, Scalar};
use crate::spelling::{Spelling, read_text};
use crate::value::{ByteOrder, Misfit, Value, misfit, read_bytes};

/// How a value is to be read: in a spelling, or as an AMQP primitive, which says its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Spelled(Spelling),
    Amqp,
}

/// A type as a user names it: `int64`, `int64:le`, `uuid:text`, `string:amqp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub scalar: Scalar,
    pub coding: Coding,
}

impl Type {
    /// Reads `name[:be|le|text|amqp]`.
    pub fn parse(text: &str) -> Result<Type, Error> {
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        let scalar = Scalar::named(name)
            .ok_or_else(|| unknown_name("type", name, Scalar::ALL.iter().map(|scalar| scalar.name())))?;
        let coding = match suffix {
            None | Some("be") => Coding::Spelled(Spelling::Bytes(ByteOrder::Big)),
            Some("le") => Coding::Spelled(Spelling::Bytes(ByteOrder::Little)),
            Some("text") => Coding::Spelled(Spelling::Text),
            Some("amqp") => Coding::Amqp,
            Some(other) => {
                return Err(unknown_name("suffix of a type", other, ["be", "le", "text", "amqp"].into_iter()));
            }
        };
        match coding {
            Coding::Amqp if !amqp::has(scalar) => Err(Error::Value(format!("type '{text}': AMQP has no {name}"))),
            Coding::Spelled(_) if suffix.is_some() && scalar.width().is_none() => {
                Err(Error::Value(format!("type '{text}': {name} takes no suffix but amqp")))
            }
            _ => Ok(Type { scalar, coding }),
        }
    }

    /// Whether a value of this kind may be read as this type.
    pub fn accepts(self, kind: Kind) -> bool {
        match (self.scalar, kind) {
            (_, Kind::Named(Scalar::Binary)) if self.coding == Coding::Amqp => true,
            (Scalar::Uuid, Kind::Named(Scalar::Binary)) | (Scalar::TimestampMs, Kind::Named(Scalar::Int64)) => true,
            (scalar, Kind::Named(named)) => scalar == named,
            (_, Kind::Unnamed(_)) => false,
        }
    }

    /// The type that a value of a kind it accepts is read as; the bits of one that has a width lie in the given order.
    #[inline]
    pub fn under(self, kind: Kind, order: ByteOrder) -> Type {
        match kind {
            // Bytes are what whoever asks says they are.
            Kind::Named(Scalar::Binary) => self,
            _ => Type { scalar: self.scalar, coding: Coding::Spelled(Spelling::Bytes(order)) },
        }
    }

    /// Reads the bytes of a value; `None` is a null of AMQP. The message of a misfit is built only when there is one.
    #[inline]
    pub fn read<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<Misfit>> {
        let value = match self.coding {
            Coding::Spelled(Spelling::Bytes(order)) => read_bytes(self.scalar, order, bytes)?,
            Coding::Spelled(Spelling::Text) => read_text(self.scalar, bytes)?,
            Coding::Amqp => return self.read_amqp(bytes, dialect),
        };
        self.fit(value, dialect).map(Some)
    }

    fn read_amqp<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<Misfit>> {
        match amqp::read(self.scalar, bytes)? {
            Some(value) => self.fit(value, dialect).map(Some).map_err(|misfit| misfit.behind(1)),
            None => Ok(None),
        }
    }

    /// Checks an integer against the column it goes into.
    #[inline]
    fn fit(self, value: Value<'_>, dialect: Dialect) -> Result<Value<'_>, Box<Misfit>> {
        match value {
            Value::Wide(number) if number.unsigned_abs() >= 10u128.pow(u32::from(DECIMAL_PRECISION)) => {
                Err(misfit(Code::OutOfRange, || "the number has more than 38 digits".into()))
            }
            Value::Int(millis) if self.scalar == Scalar::TimestampMs && dialect == Dialect::Spark => {
                match millis.checked_mul(1000) {
                    Some(micros) => Ok(Value::Int(micros)),
                    None => Err(misfit(Code::OutOfRange, || "the time does not fit 64 bits of microseconds".into())),
                }
            }
            value => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::untyped;
    use crate::value::uuid_digits;

    fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<Value<'a>, Code> {
        let read = Type::parse(name).unwrap().read(bytes, Dialect::Arrow);
        read.map(|value| value.expect("only AMQP has a null")).map_err(|misfit| misfit.code)
    }

    #[test]
    fn byte_order_is_part_of_the_type() {
        assert_eq!(read("int32", &[0, 0, 0, 3]), Ok(Value::Int(3)));
        assert_eq!(read("int32:le", &[3, 0, 0, 0]), Ok(Value::Int(3)));
        assert_eq!(read("int16", &[0xff, 0xfe]), Ok(Value::Int(-2)));
        assert_eq!(read("uint16", &[0xff, 0xfe]), Ok(Value::Int(65534)));
        assert_eq!(read("int32", &[0, 3]), Err(Code::WrongSize));
    }

    #[test]
    fn integers_in_text_keep_to_digits_and_range() {
        assert_eq!(read("int8:text", b"-128"), Ok(Value::Int(-128)));
        assert_eq!(read("int8:text", b"128"), Err(Code::OutOfRange));
        assert_eq!(read("uint8:text", b"-0"), Ok(Value::Int(0)));
        assert_eq!(read("uint8:text", b"-1"), Err(Code::OutOfRange));
        assert_eq!(read("int64:text", &[b'0'; 99]), Ok(Value::Int(0)));
        assert_eq!(read("int64:text", &[b'9'; 99]), Err(Code::OutOfRange));
        for wrong in ["", "-", "+1", " 1", "1 ", "1_0", "0x1", "\u{0661}"] {
            assert_eq!(read("int64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
        }
    }

    #[test]
    fn floats_in_text_keep_to_the_grammar() {
        for right in ["1", "1.", ".5", "-1e5", "+2.5E-3", "NaN", "Infinity", "-Infinity"] {
            assert!(read("float64:text", right.as_bytes()).is_ok(), "{right:?}");
        }
        for wrong in ["", ".", "e5", "1e", "inf", "nan", "+Infinity", "1f", "0x1p3", "1 "] {
            assert_eq!(read("float64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
        }
        assert_eq!(read("float32:text", b"1e99"), Ok(Value::Float32(f32::INFINITY)));
    }

    #[test]
    fn half_a_surrogate_pair_is_no_character() {
        assert_eq!(read("char", &[0xd8, 0x00]), Err(Code::OutOfRange));
        assert_eq!(read("char", &[0x00, 0xe9]), Ok(Value::Text("é".into())));
        assert_eq!(read("char:text", "📦".as_bytes()), Err(Code::BadText));
    }

    #[test]
    fn a_wide_integer_past_38_digits_is_out_of_range() {
        assert_eq!(read("uint128", &[0xff; 16]), Err(Code::OutOfRange));
        assert_eq!(read("int128", &[0xff; 16]), Ok(Value::Wide(-1)));
        assert_eq!(read("int128:text", &[b'9'; 38]), Ok(Value::Wide(10i128.pow(38) - 1)));
        assert_eq!(read("int128:text", &[b'9'; 39]), Err(Code::OutOfRange));
    }

    #[test]
    fn a_uuid_is_lower_case_text() {
        assert_eq!(&uuid_digits([0xaf; 16]), b"afafafaf-afaf-afaf-afaf-afafafafafaf");
        let bytes: Vec<u8> = (0..16).collect();
        let text = "00010203-0405-0607-0809-0a0b0c0d0e0f";
        assert_eq!(read("uuid", &bytes), Ok(Value::Text(text.into())));
        assert_eq!(read("uuid:text", text.to_uppercase().as_bytes()), Ok(Value::Text(text.into())));
        assert_eq!(read("uuid:text", b"0001020304050607-0809-0a0b0c0d0e0f"), Err(Code::BadText));
    }

    #[test]
    fn spark_counts_microseconds() {
        let far = Type::parse("timestamp_ms").unwrap();
        assert_eq!(far.read(&5i64.to_be_bytes(), Dialect::Spark), Ok(Some(Value::Int(5000))));
        assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Spark).unwrap_err().code, Code::OutOfRange);
        assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Arrow), Ok(Some(Value::Int(i64::MAX))));
        let amqp = Type::parse("timestamp_ms:amqp").unwrap();
        let bytes = [&[0x83][..], &i64::MAX.to_be_bytes()].concat();
        let misfit = amqp.read(&bytes, Dialect::Spark).unwrap_err();
        assert_eq!((misfit.code, misfit.within), (Code::OutOfRange, 1));
    }

    #[test]
    fn the_kind_decides_but_bytes_may_be_amqp() {
        let amqp = Type::parse("int64:amqp").unwrap();
        let (long, binary) = (Kind::Named(Scalar::Int64), Kind::Named(Scalar::Binary));
        assert!(amqp.accepts(long) && amqp.accepts(binary) && !amqp.accepts(Kind::Named(Scalar::Int32)));
        assert_eq!(amqp.under(long, ByteOrder::Little), Type::parse("int64:le").unwrap());
        assert_eq!(amqp.under(binary, ByteOrder::Little), amqp);
        assert!(!Type::parse("int64").unwrap().accepts(binary));
    }

    #[test]
    fn a_suffix_only_where_there_is_a_spelling_to_choose() {
        assert!(Type::parse("string:be").is_err());
        assert!(Type::parse("string:amqp").is_ok());
        assert!(Type::parse("uint128:amqp").is_err());
        assert!(Type::parse("int32:big").is_err());
        let Err(Error::Value(text)) = Type::parse("itn32") else { panic!("accepted") };
        assert!(text.contains("did you mean 'int32'?"), "{text}");
    }

    #[test]
    fn typed_values_are_spelled_as_asked_and_read_back() {
        for (name, bits) in [("int32", vec![0, 0, 1, 2]), ("float64", 0.1f64.to_be_bytes().to_vec()), ("bool", vec![1])]
        {
            let kind = Kind::parse(name).unwrap();
            for (suffix, spelling) in [
                ("be", Spelling::Bytes(ByteOrder::Big)),
                ("le", Spelling::Bytes(ByteOrder::Little)),
                ("text", Spelling::Text),
            ] {
                let written = untyped(kind, &bits, spelling).unwrap();
                assert_eq!(read(&format!("{name}:{suffix}"), &written), read(name, &bits), "{name}:{suffix}");
            }
            let short = untyped(kind, &[], Spelling::Bytes(ByteOrder::Big)).unwrap_err();
            assert_eq!(short.code, Code::WrongSize);
        }
    }
}
