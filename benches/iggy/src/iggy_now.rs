//! The crate `iggy_common` 0.11.1-edge.10: a B-tree map, typed keys.

use std::collections::BTreeMap;

use bytes::Bytes;
use iggy_binary_protocol::{WireUserHeaders, validate_user_headers};
use iggy_common::wire_conversions::{user_headers_from_wire, user_headers_to_wire};
use iggy_common::{HeaderKey, HeaderKind, HeaderValue};

pub struct Crate;

impl super::Peer for Crate {
    const SIDE: &'static str = "crate iggy_common 0.11.1-edge.10";
    type Map = BTreeMap<HeaderKey, HeaderValue>;
    type Keys = [HeaderKey; 3];

    /// As `IggyMessage::user_headers_map` does.
    fn decode(block: Bytes) -> Self::Map {
        let wire = WireUserHeaders::from_bytes(block).expect("a whole block");
        user_headers_from_wire(&wire).expect("known kinds")
    }

    /// As `IggyMessage::builder` does.
    fn encode(map: &Self::Map) -> Bytes {
        user_headers_to_wire(map).into_bytes()
    }

    fn each(map: &Self::Map, mut see: impl FnMut(&[u8], u8, &[u8])) {
        for (key, value) in map {
            assert_eq!(key.kind(), HeaderKind::String);
            see(key.as_bytes(), value.kind().as_code(), value.as_bytes());
        }
    }

    fn keys() -> Self::Keys {
        ["tenant", "retry", "amount"].map(|key| HeaderKey::try_from(key).expect("a key"))
    }

    fn select(map: &Self::Map, [tenant, retry, amount]: &Self::Keys) -> (usize, i32, i64) {
        let value = |key| map.get(key).expect("every message has it");
        (
            value(tenant).as_str().expect("a string").len(),
            value(retry).as_int32().expect("an int32"),
            value(amount).as_int64().expect("an int64"),
        )
    }

    const VALIDATE: Option<(&'static str, super::Whole)> =
        Some(("crate iggy_binary_protocol 0.11.1-edge.8", |block| validate_user_headers(block).is_ok()));
}
