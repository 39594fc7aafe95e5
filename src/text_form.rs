//! [`TextForm`]: times, dates and decimals that are written as text.
//!
//! ```text
//!   timestamp:iso        2026-01-31T09:30:00.5+01:00   RFC 3339, section 5.6; the offset is required, and seconds that are 0
//!                                                      may be left out, as Java does
//!   timestamp:ms         1769848200500                 ASCII digits since 1970; also `s`, `us` and `ns`
//!   date:text            2026-01-31
//!   decimal(9,2):text    -12.50, 1.25e1                digits beyond the precision must be 0
//! ```
//!
//! Times and dates are in the years 1 to 9999, the range of Python and Spark. Digits below the unit of the result are
//! dropped.

use chrono::{DateTime, Datelike as _, NaiveDate, SecondsFormat};

use crate::error::Code;
use crate::number::fitting;
use crate::value::{InvalidValue, Value, invalid};

/// Text format of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// RFC 3339, read into microseconds.
    Iso,
    /// Digits in this unit, read into microseconds.
    Epoch(Unit),
    Date,
    Decimal(DecimalType),
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// Maximum number of digits of a number, and of its decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalType {
    pub precision: u8,
    pub scale: u8,
}

/// Maximum number of digits that 128 bits hold.
const MAX_PRECISION: u8 = 38;

const NANOS: i128 = 1_000_000_000;
const SECONDS_OF_DAY: i64 = 86_400;

/// Number of a leap second in its minute.
const LEAP: i64 = 60;

/// January 1 of the years 1 and 10000, in days since 1970.
const DAYS: (i64, i64) = (-719_162, 2_932_897);

impl TextForm {
    /// Returns the form of a type and its suffix; `None` for other types.
    pub fn parse(name: &str, suffix: &str) -> Option<TextForm> {
        Some(match (name, suffix) {
            ("timestamp", "iso") => TextForm::Iso,
            ("timestamp", unit) => TextForm::Epoch(Unit::from_name(unit)?),
            ("date", "text") => TextForm::Date,
            (name, "text") => TextForm::Decimal(DecimalType::parse(name)?),
            _ => return None,
        })
    }

    /// Type and suffix, in the syntax of `parse`.
    pub fn name(self) -> String {
        match self {
            TextForm::Iso => "timestamp:iso".into(),
            TextForm::Epoch(unit) => format!("timestamp:{}", unit.name()),
            TextForm::Date => "date:text".into(),
            TextForm::Decimal(decimal) => format!("{}:text", decimal.name()),
        }
    }

    /// Parses text: a time as its number of units, a date as days since 1970, a decimal without its point.
    pub fn read(self, bytes: &[u8]) -> Result<Value<'static>, Box<InvalidValue>> {
        match self {
            TextForm::Iso => read_iso(bytes).map(Value::Int),
            TextForm::Epoch(unit) => read_epoch(bytes, unit).map(Value::Int),
            TextForm::Date => read_date(bytes).map(Value::Int),
            TextForm::Decimal(decimal) => decimal.read(bytes).map(Value::Wide),
        }
    }
}

impl Unit {
    const ALL: [Unit; 4] = [Unit::Second, Unit::Millisecond, Unit::Microsecond, Unit::Nanosecond];

    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Millisecond => "ms",
            Unit::Microsecond => "us",
            Unit::Nanosecond => "ns",
        }
    }

    pub fn nanos(self) -> i128 {
        match self {
            Unit::Second => NANOS,
            Unit::Millisecond => 1_000_000,
            Unit::Microsecond => 1_000,
            Unit::Nanosecond => 1,
        }
    }
}

impl DecimalType {
    /// Reads `decimal(precision, scale)`.
    fn parse(name: &str) -> Option<DecimalType> {
        let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
        let number = |digits: &str| digits.trim().parse::<u8>().ok();
        let decimal = DecimalType { precision: number(precision)?, scale: number(scale)? };
        ((1..=MAX_PRECISION).contains(&decimal.precision) && decimal.scale <= decimal.precision).then_some(decimal)
    }

    pub fn name(self) -> String {
        format!("decimal({},{})", self.precision, self.scale)
    }

    fn read(self, bytes: &[u8]) -> Result<i128, Box<InvalidValue>> {
        let bad = || bad_text(format!("the text does not spell {}", self.name()));
        let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent),
            None => (text, "0"),
        };
        let (is_negative, number) = match number.as_bytes().first() {
            Some(b'-') => (true, &number[1..]),
            Some(b'+') => (false, &number[1..]),
            _ => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if whole.len() + fraction.len() == 0
            || exponent_digits.is_empty()
            || ![whole, fraction, exponent_digits].into_iter().all(is_digits)
        {
            return Err(bad());
        }
        let digits = || whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit - b'0'));
        let Some(first) = digits().position(|digit| digit != 0) else { return Ok(0) };
        let last = digits().enumerate().filter(|(_, digit)| *digit != 0).map(|(index, _)| index).last();
        let last = last.unwrap_or(first);
        // Powers of ten of the first and the last digit: 0 for the digit before the point, -1 for the one after it.
        let power = |index: usize| {
            let exponent = exponent.parse::<i64>().ok()?;
            exponent.checked_add(whole.len() as i64 - 1 - index as i64)
        };
        match (power(first), power(last)) {
            (Some(high), Some(low))
                if high < i64::from(self.precision) - i64::from(self.scale) && low >= -i64::from(self.scale) =>
            {
                let size = digits().skip(first).take(last - first + 1).fold(0, |size, digit| size * 10 + digit);
                let size = size * 10i128.pow(fitting(low + i64::from(self.scale)));
                Ok(if is_negative { -size } else { size })
            }
            _ => Err(self.too_large()),
        }
    }

    /// Writes a number of another scale with the decimals of this type. With `truncates`, excess decimals are cut off.
    pub fn write(self, number: i128, scale: i8, truncates: bool) -> Result<String, Box<InvalidValue>> {
        let shift = i32::from(self.scale) - i32::from(scale);
        let power = 10i128.checked_pow(shift.unsigned_abs()).ok_or_else(|| self.too_large())?;
        let size = match shift {
            0.. => number.checked_mul(power),
            _ if number % power != 0 && !truncates => return Err(self.too_precise()),
            _ => Some(number / power),
        };
        let size = size.filter(|size| size.unsigned_abs() < 10u128.pow(self.precision.into()));
        let size = size.ok_or_else(|| self.too_large())?;
        let scale = usize::from(self.scale);
        let digits = format!("{:0width$}", size.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let (sign, point) = (if size < 0 { "-" } else { "" }, if scale == 0 { "" } else { "." });
        Ok(format!("{sign}{whole}{point}{fraction}"))
    }

    fn too_precise(self) -> Box<InvalidValue> {
        invalid(Code::OutOfRange, || {
            let name = self.name();
            format!("the number has more decimals than {name}: pass more, or truncate=True to cut them off")
        })
    }

    fn too_large(self) -> Box<InvalidValue> {
        invalid(Code::OutOfRange, || format!("the number does not fit {}", self.name()))
    }
}

#[cold]
fn bad_text(message: String) -> Box<InvalidValue> {
    invalid(Code::BadText, || message)
}

fn read_iso(bytes: &[u8]) -> Result<i64, Box<InvalidValue>> {
    let bad = || bad_text("the text is not a time with an offset, such as 2026-01-31T09:00:00Z".into());
    let ([date @ .., b'T' | b't' | b' ', h1, h2, b':', m1, m2], rest) = bytes.split_at_checked(16).ok_or_else(bad)?
    else {
        return Err(bad());
    };
    let time_of_day = seconds_of_day(digits(&[*h1, *h2]), digits(&[*m1, *m2])).ok_or_else(bad)?;
    let (second, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (digits(&[*s1, *s2]), rest),
        _ => (Some(0), rest),
    };
    let second = second.filter(|second| *second <= LEAP).ok_or_else(bad)?;
    let (fraction, offset) = match rest {
        [b'.', rest @ ..] => {
            let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            // Only seconds have decimals.
            if len == 0 || bytes[16] != b':' {
                return Err(bad());
            }
            rest.split_at(len)
        }
        _ => rest.split_at(0),
    };
    let offset = match offset {
        b"" => None,
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let seconds = seconds_of_day(digits(&[*h1, *h2]), digits(&[*m1, *m2])).ok_or_else(bad)?;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => return Err(bad()),
    };
    let days = days_of(date).ok_or_else(bad)?;
    let offset =
        offset.ok_or_else(|| bad_text("the time has no offset, such as Z or +01:00: read it as string".into()))?;
    // Seconds up to the minute.
    let minute = days? * SECONDS_OF_DAY + time_of_day - offset;
    if second == LEAP {
        check_leap_second(minute, fraction)?;
    }
    let nanos = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
    let nanos = nanos.fold(0, |nanos, digit| nanos * 10 + i128::from(digit - b'0'));
    time(i128::from(minute + second) * NANOS + nanos, Unit::Microsecond)
}

/// Rejects a second 60 unless it is the last second of a day in UTC, and rejects fractions of it. As in POSIX, second
/// 60 has the same number as the next second.
#[cold]
fn check_leap_second(minute: i64, fraction: &[u8]) -> Result<(), Box<InvalidValue>> {
    if minute.rem_euclid(SECONDS_OF_DAY) != SECONDS_OF_DAY - 60 {
        return Err(bad_text("a leap second is at 23:59:60 in UTC".into()));
    }
    match fraction.iter().all(|digit| *digit == b'0') {
        true => Ok(()),
        false => Err(invalid(Code::OutOfRange, || "a fraction of a leap second has no number of its own".into())),
    }
}

fn read_epoch(bytes: &[u8], unit: Unit) -> Result<i64, Box<InvalidValue>> {
    let (is_negative, number) = match bytes {
        [b'-', number @ ..] => (true, number),
        number => (false, number),
    };
    if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        return Err(bad_text(format!("the text does not spell timestamp:{}", unit.name())));
    }
    // The cap is far beyond the year 9999 in any unit, and prevents an overflow.
    let size = number.iter().fold(0i128, |size, digit| (size * 10 + i128::from(digit - b'0')).min(10i128.pow(27)));
    time(if is_negative { -size } else { size } * unit.nanos(), Unit::Microsecond)
}

/// Returns a time since 1970 in a unit, if it is in the years 1 to 9999 and fits 64 bits.
pub fn time(nanos: i128, unit: Unit) -> Result<i64, Box<InvalidValue>> {
    let day = nanos.div_euclid(NANOS * i128::from(SECONDS_OF_DAY));
    if !(i128::from(DAYS.0)..i128::from(DAYS.1)).contains(&day) {
        return Err(invalid(Code::OutOfRange, || "the time is not in the years 1 to 9999".into()));
    }
    i64::try_from(nanos.div_euclid(unit.nanos()))
        .map_err(|_| invalid(Code::OutOfRange, || format!("the time does not fit 64 bits of {}", unit.name())))
}

fn read_date(bytes: &[u8]) -> Result<i64, Box<InvalidValue>> {
    days_of(bytes).ok_or_else(|| bad_text("the text is not a date, such as 2026-01-31".into()))?
}

/// Parses `year-month-day` to days since 1970; `None` if the bytes have another form.
fn days_of(bytes: &[u8]) -> Option<Result<i64, Box<InvalidValue>>> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else { return None };
    let (year, month, day) = (digits(&[*y1, *y2, *y3, *y4])?, digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(match NaiveDate::from_ymd_opt(fitting(year), fitting(month), fitting(day)) {
        None => Err(bad_text("the date does not exist".into())),
        Some(date) if date.year() == 0 => Err(not_in_years()),
        Some(date) => Ok(date.to_epoch_days().into()),
    })
}

/// Writes days since 1970 as `year-month-day`.
pub fn date_text(days: i32) -> Result<String, Box<InvalidValue>> {
    let date = NaiveDate::from_epoch_days(days).filter(|date| (1..=9999).contains(&date.year()));
    date.map(|date| date.to_string()).ok_or_else(not_in_years)
}

#[cold]
fn not_in_years() -> Box<InvalidValue> {
    invalid(Code::OutOfRange, || "the date is not in the years 1 to 9999".into())
}

/// Writes a time as RFC 3339 in UTC, with no, three, six or nine decimals, as needed.
pub fn iso_text(nanos: i128) -> Result<String, Box<InvalidValue>> {
    let seconds = time(nanos, Unit::Second)?;
    let time =
        DateTime::from_timestamp(seconds, fitting(nanos.rem_euclid(NANOS))).expect("it is in the years 1 to 9999");
    Ok(time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

fn seconds_of_day(hour: Option<i64>, minute: Option<i64>) -> Option<i64> {
    let (hour, minute) = (hour?, minute?);
    (hour < 24 && minute < 60).then_some(hour * 3600 + minute * 60)
}

/// Parses ASCII digits as a number.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
#[path = "../tests/rust/units/text_form.rs"]
mod tests;
