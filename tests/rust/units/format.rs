//! The table of formats.

use letterhead::field::FieldType;
use letterhead::format::Format;

#[test]
fn every_format_is_found_by_its_name() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.info().name), Ok(*format));
    }
}

#[test]
fn every_message_format_has_one_headers_field() {
    for format in Format::ALL {
        let fields = format.info().fields;
        assert_eq!(fields.iter().filter(|field| field.field_type == FieldType::Headers).count(), 1);
    }
}
