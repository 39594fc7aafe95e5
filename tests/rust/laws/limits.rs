//! Limits: data at a limit is read as without the limit, and data above a limit is rejected, in every mode and as a
//! column.

use letterhead::arrow::Decode;
use letterhead::arrow::messages::Messages as MessagesOperation;
use letterhead::error::{Code, ErrorDetail};
use letterhead::format::Format;
use letterhead::limits::Limits;
use letterhead::options::ReadOptions;
use proptest::prelude::*;

use super::generated::recipe;
use super::{InEveryMode, cases, is_batch};
use crate::columns::apply;
use crate::common::{STRICT, errors, read};

fn with(limits: Limits) -> ReadOptions {
    ReadOptions { limits, ..STRICT }
}

/// Error that a column of this one value raises.
fn raised(format: Format, serialized: &[u8], options: ReadOptions) -> Option<ErrorDetail> {
    let serialized_rows = [serialized.to_vec()];
    let made = match is_batch(format) {
        true => apply(format, &MessagesOperation { options, ..MessagesOperation::default() }, &serialized_rows),
        false => apply(format, &Decode { options, ..Decode::default() }, &serialized_rows),
    };
    made.err().map(|(_, error)| error)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_value_at_its_limits_is_read_and_one_over_them_is_not(recipe in recipe()) {
        for format in Format::ALL {
            let serialized = recipe.whole(*format);
            let Ok(messages) = read(*format, &serialized, STRICT) else { continue };
            let most = messages.iter().map(|message| message.heads().len()).max().unwrap_or(0);
            let records = messages.len();
            let at = Limits { message_bytes: serialized.len(), headers: most, records, ..Limits::DEFAULT };
            prop_assert_eq!(read(*format, &serialized, with(at)), Ok(messages.clone()), "{:?}", format);
            prop_assert_eq!(errors(*format, &serialized, with(at)), vec![]);
            prop_assert_eq!(raised(*format, &serialized, with(at)), None);

            if let Some(less) = most.checked_sub(1) {
                let options = with(Limits { headers: less, ..at });
                let found = errors(*format, &serialized, options);
                let over = messages.iter().filter(|message| message.heads().len() > less).count();
                prop_assert_eq!(found.len(), over, "{:?} {:?}", format, found);
                prop_assert!(found.iter().all(|error| error.code == Code::LimitExceeded));
                prop_assert_eq!(read(*format, &serialized, options).err(), found.first().cloned());
                prop_assert_eq!(raised(*format, &serialized, options), found.first().cloned());
            }
            if let Some(less) = records.checked_sub(1).filter(|_| is_batch(*format)) {
                let options = with(Limits { records: less, ..at });
                let found = errors(*format, &serialized, options);
                prop_assert_eq!(found.len(), 1, "{:?} {:?}", format, found);
                prop_assert_eq!((found[0].code, found[0].byte, found[0].header), (Code::LimitExceeded, None, None));
                prop_assert_eq!(read(*format, &serialized, options).err(), found.first().cloned());
                prop_assert_eq!(raised(*format, &serialized, options), found.first().cloned());
            }
            if let Some(less) = serialized.len().checked_sub(1) {
                let options = with(Limits { message_bytes: less, ..at });
                let found = errors(*format, &serialized, options);
                prop_assert_eq!(found.len(), 1);
                prop_assert_eq!((found[0].code, found[0].byte, found[0].header), (Code::LimitExceeded, Some(less), None));
                prop_assert_eq!(read(*format, &serialized, options).err(), found.first().cloned());
                prop_assert_eq!(raised(*format, &serialized, options), found.first().cloned());
            }
        }
    }

    #[test]
    fn every_mode_finds_the_same_over_limits(recipe in recipe(), headers in 0usize..4, message_bytes in 0usize..200) {
        for format in Format::ALL {
            let serialized = recipe.near(*format);
            let options = with(Limits { headers, message_bytes, ..Limits::DEFAULT });
            let found = format.visit(InEveryMode(&serialized, options));
            prop_assert!(found.fast.is_none_or(|fast| fast == found.exact.is_empty()), "{:?}", format);
            prop_assert_eq!(found.exact, found.labelled);
        }
    }
}
