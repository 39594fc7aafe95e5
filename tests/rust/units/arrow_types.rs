//! Spark DDL.

use super::*;

#[test]
fn ddl_quotes_names_that_need_it() {
    assert_eq!(quoted("tenant"), "tenant");
    assert_eq!(quoted("señal-📦"), "`señal-📦`");
    assert_eq!(quoted("a`b"), "`a``b`");
}
