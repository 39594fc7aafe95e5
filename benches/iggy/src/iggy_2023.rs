//! The crate `iggy` 0.6.210: a hash map, string keys.

use std::collections::HashMap;

use bytes::Bytes;
use iggy::bytes_serializable::BytesSerializable;
use iggy::models::header::{HeaderKey, HeaderValue};

pub struct Crate;

impl super::Peer for Crate {
    const SIDE: &'static str = "crate iggy 0.6.210";
    type Map = HashMap<HeaderKey, HeaderValue>;
    type Keys = [HeaderKey; 3];

    fn decode(block: Bytes) -> Self::Map {
        HashMap::from_bytes(block).expect("a whole block")
    }

    fn encode(map: &Self::Map) -> Bytes {
        map.to_bytes()
    }

    fn each(map: &Self::Map, mut see: impl FnMut(&[u8], u8, &[u8])) {
        for (key, value) in map {
            see(key.as_str().as_bytes(), value.kind.as_code(), &value.value);
        }
    }

    fn keys() -> Self::Keys {
        ["tenant", "retry", "amount"].map(|key| HeaderKey::new(key).expect("a key"))
    }

    fn select(map: &Self::Map, [tenant, retry, amount]: &Self::Keys) -> (usize, i32, i64) {
        let value = |key| map.get(key).expect("every message has it");
        (
            value(tenant).as_str().expect("a string").len(),
            value(retry).as_int32().expect("an int32"),
            value(amount).as_int64().expect("an int64"),
        )
    }
}
