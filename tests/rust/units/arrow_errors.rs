//! Error policies for rows.

use super::*;

const READABLE: FailedRow =
    FailedRow { is_broken: false, has_frame_errors: false, is_appended: true, keeps_parts: true };

#[test]
fn error_policy_decides_about_row_with_errors() {
    let single = FailedRow { keeps_parts: false, ..READABLE };
    let broken = FailedRow { is_broken: true, ..READABLE };
    let unwritten = FailedRow { is_appended: false, ..READABLE };
    for (row, null, column) in [
        (READABLE, RowAction::Keep, RowAction::Keep),
        (single, RowAction::Null, RowAction::Keep),
        (broken, RowAction::Null, RowAction::Keep),
        (unwritten, RowAction::Null, RowAction::Null),
    ] {
        assert_eq!(row.decide(OnError::Raise, true, false), RowAction::Raise, "{row:?}");
        assert_eq!(row.decide(OnError::Null, true, false), null, "{row:?}");
        assert_eq!(row.decide(OnError::Column, true, false), column, "{row:?}");
        assert_eq!(row.is_null(OnError::Column), column == RowAction::Null, "{row:?}");
    }
}

#[test]
fn a_filter_drops_a_row_whose_errors_are_dropped_and_no_other() {
    assert_eq!(READABLE.decide(OnError::Null, false, false), RowAction::Drop);
    assert_eq!(READABLE.decide(OnError::Column, false, false), RowAction::Keep);
    assert_eq!(READABLE.decide(OnError::Raise, false, false), RowAction::Raise);
}
