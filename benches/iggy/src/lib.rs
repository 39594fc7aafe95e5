//! What Apache Iggy's own crates take to read and write the headers of a message, on the blocks of `benches.typed`.
//!
//! ```text
//! system|mimalloc RESULTS quick|full [CORPUS FILE HEADERS CHECKSUM SELECTED]...
//! ```
//!
//! `python -m benches.iggy.export` writes the files and prints these arguments. A file is a u32 count, then a u32
//! length and the bytes of each block, little-endian. Each crate has to give the answers that are passed, or nothing is
//! timed.
//!
//! A good part of the crates' time is spent on memory, so there are two programs: with the allocator that a Rust
//! program has unless it says otherwise, and with the one that letterhead's wheel has. Decided in favour of the crates:
//! blocks are static, so that handing one over counts no references; every map is dropped before the next one is made,
//! so that the allocator has its memory at hand; maps to encode are made just before, a thousand at a time, and are
//! still in the cache.

mod iggy_2023;
mod iggy_now;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{env, fs};

use bytes::Bytes;
use serde_json::{Value, json};

/// Maps that are made at once, before the time that encoding them takes is taken.
const MAPS: usize = 1_000;
const ROUNDS: usize = 25;
const WARM_UP: usize = 2;

/// One crate, as its users call it.
trait Peer {
    const SIDE: &'static str;
    type Map;
    /// The keys `tenant`, `retry` and `amount`, made once.
    type Keys;

    fn decode(block: Bytes) -> Self::Map;
    fn encode(map: &Self::Map) -> Bytes;
    /// Hands over key, code of the kind and value of each header.
    fn each(map: &Self::Map, see: impl FnMut(&[u8], u8, &[u8]));
    fn keys() -> Self::Keys;
    /// Gives the length of the tenant, the retry and the amount.
    fn select(map: &Self::Map, keys: &Self::Keys) -> (usize, i32, i64);
    /// What says whether a block is whole without making a map, where there is something.
    const VALIDATE: Option<(&'static str, Whole)> = None;
}

type Whole = fn(&[u8]) -> bool;

/// Does what the command line says, and writes down that it was with this allocator.
pub fn run(allocator: &str) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [results, mode, corpora @ ..] = arguments.as_slice() else { return Err("RESULTS and quick or full".into()) };
    let rounds = match mode.as_str() {
        "quick" => 1,
        "full" => ROUNDS,
        _ => return Err(format!("quick or full, not {mode}").into()),
    };
    let mut measured = Vec::new();
    for corpus in corpora.chunks(5) {
        let [name, file, headers, checksum, selected] = corpus else { return Err("five arguments a corpus".into()) };
        let corpus = Corpus {
            name,
            blocks: read(file)?,
            headers: headers.parse()?,
            checksum: checksum.parse()?,
            selected: selected.parse()?,
        };
        measured.extend(if name.starts_with("iggy-2023") {
            measure::<iggy_2023::Crate>(&corpus, rounds)
        } else {
            measure::<iggy_now::Crate>(&corpus, rounds)
        });
    }
    let recorded = json!({ "allocator": allocator, "results": measured });
    fs::write(results, serde_json::to_string_pretty(&recorded)?)?;
    Ok(())
}

/// Blocks, and the answers that go with them.
struct Corpus<'a> {
    name: &'a str,
    blocks: Vec<Bytes>,
    headers: usize,
    checksum: u64,
    selected: i64,
}

fn read(file: &str) -> Result<Vec<Bytes>, Box<dyn Error>> {
    fn take(rest: &mut &'static [u8], len: u32) -> Result<&'static [u8], &'static str> {
        rest.split_off(..len as usize).ok_or("the file ends too early")
    }
    fn number(rest: &mut &'static [u8]) -> Result<u32, Box<dyn Error>> {
        Ok(u32::from_le_bytes(take(rest, 4)?.try_into()?))
    }
    let mut rest: &'static [u8] = fs::read(file)?.leak();
    let count = number(&mut rest)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let len = number(&mut rest)?;
        blocks.push(Bytes::from_static(take(&mut rest, len)?));
    }
    Ok(blocks)
}

fn measure<P: Peer>(corpus: &Corpus, rounds: usize) -> Vec<Value> {
    check::<P>(corpus);
    let (blocks, keys) = (&corpus.blocks, P::keys());
    let decode = || timed(blocks, |block| black_box(P::decode(black_box(block).clone())));
    let select = || timed(blocks, |block| black_box(P::select(&P::decode(black_box(block).clone()), &keys)));
    let encode = || {
        let chunk = |blocks: &[Bytes]| {
            let maps: Vec<_> = blocks.iter().cloned().map(P::decode).collect();
            timed(&maps, |map| black_box(P::encode(black_box(map))))
        };
        blocks.chunks(MAPS).map(chunk).sum()
    };
    let record = |job: &str, side: &str, run: &dyn Fn() -> Duration| {
        let times: Vec<_> = (0..WARM_UP + rounds).map(|_| run().as_nanos() as f64 / corpus.headers as f64).collect();
        json!({
            "job": job,
            "corpus": corpus.name,
            "side": side,
            "messages": blocks.len(),
            "headers": corpus.headers,
            "reads": blocks.iter().map(Bytes::len).sum::<usize>(),
            "ns_per_header": &times[WARM_UP..],
        })
    };
    let mut measured = vec![
        record("decode", P::SIDE, &decode),
        record("select 3", P::SIDE, &select),
        record("encode", P::SIDE, &encode),
    ];
    if let Some((side, whole)) = P::VALIDATE {
        let validate = || timed(blocks, |block| black_box(whole(black_box(block))));
        measured.push(record("validate", side, &validate));
    }
    measured
}

fn timed<T, R>(items: &[T], work: impl Fn(&T) -> R) -> Duration {
    let start = Instant::now();
    for item in items {
        work(item);
    }
    start.elapsed()
}

/// Holds the crate to the answers, on what it reads and on what it writes.
fn check<P: Peer>(corpus: &Corpus) {
    let (mut headers, mut checksum, mut selected) = (0, 0u64, 0i64);
    let (mut written, keys) = (0u64, P::keys());
    for (row, block) in (1u64..).zip(&corpus.blocks) {
        let map = P::decode(block.clone());
        let encoded = P::encode(&map);
        assert_eq!(encoded.len(), block.len(), "{}: row {row} is written with another length", corpus.name);
        P::each(&map, |_, _, _| headers += 1);
        checksum = checksum.wrapping_add(row.wrapping_mul(sum::<P>(&map)));
        written = written.wrapping_add(row.wrapping_mul(sum::<P>(&P::decode(encoded))));
        let (tenant, retry, amount) = P::select(&map, &keys);
        selected += tenant as i64 + i64::from(retry) + amount;
        assert!(P::VALIDATE.is_none_or(|(_, whole)| whole(block) && !whole(&block[..block.len() - 1])));
    }
    assert_eq!((headers, checksum, selected), (corpus.headers, corpus.checksum, corpus.selected), "{}", corpus.name);
    assert_eq!(written, checksum, "{}: what is written reads differently", corpus.name);
}

/// Adds up the headers of a message, whatever order its map has.
fn sum<P: Peer>(map: &P::Map) -> u64 {
    let mut sum = 0;
    P::each(map, |key, kind, value| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(key);
        hasher.update(&[kind]);
        hasher.update(value);
        sum += u64::from(hasher.finalize());
    });
    sum
}
