//! Runs two versions of the library in one process, in alternating turns.
//!
//! ```text
//! compare FOLDER RESULT ROUNDS CORPORA JOBS      lists are separated by commas; the names are those in the result
//! ```
//!
//! `benches/compare.py` builds this, writes the corpora, runs it and prints what it measured.
//!
//! In a round each version runs a job over all batches, once or more often, in turns of a few milliseconds. Times are
//! CPU times of the thread. An output is dropped before the next call. All results are compared before anything is timed.

mod inputs;

use std::error::Error;
use std::hint::black_box;
use std::{env, fs};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray};
use serde_json::{Value, json};

use inputs::{Corpus, cut, record_batches, with_values_of};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod old {
    use letterhead_old as letterhead;
    include!(env!("OLD_JOBS"));
}

mod new {
    use letterhead_new as letterhead;
    include!(env!("NEW_JOBS"));
}

pub type Run = Box<dyn Fn(&ArrayRef) -> ArrayRef>;

/// A list of headers holds the key and the type of each.
pub enum Operation {
    Decode,
    Encode,
    Select(Vec<(String, String)>),
    Validate,
    RecordBatches(Vec<(String, String)>),
}

/// Rows of a batch of header blocks.
const BATCHES: [usize; 2] = [16_000, 64_000];

/// Bytes of a value, where values are long.
const VALUE_BYTES: [usize; 2] = [100, 1_000];
const LONG_BATCHES: usize = 4;

/// Bytes of a record batch, and of those that a segment's reader passes in one column.
const RECORD_BATCHES: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("16 KiB", 16 << 10), ("1 MiB", 1 << 20)];
const COLUMN_BYTES: usize = 4 << 20;
const RECORDS: usize = 128_000;

/// How long a version runs before it is another one's turn, and how long it runs in a round at least.
const TURN_NS: u64 = 4_000_000;
const LEAST_ROUND_NS: u64 = 24_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, result, rounds, corpora, jobs] = arguments.as_slice() else {
        return Err("compare FOLDER RESULT ROUNDS CORPORA JOBS".into());
    };
    let index: Value = serde_json::from_str(&fs::read_to_string(format!("{folder}/corpora.json"))?)?;
    let quick = index["quick"] == true;
    let jobs: Vec<_> = jobs.split(',').collect();
    let mut comparison = Comparison { rounds: rounds.parse()?, jobs, found: Vec::new() };
    for name in corpora.split(',') {
        let corpus = Corpus::read(folder, name, &index)?;
        comparison.header_blocks(&corpus);
        comparison.record_batches(&corpus);
    }
    comparison.long_values(quick);
    fs::write(result, serde_json::to_string(&comparison.found)?)?;
    Ok(())
}

struct Comparison<'a> {
    rounds: usize,
    /// Names of those to run.
    jobs: Vec<&'a str>,
    found: Vec<Value>,
}

impl Comparison<'_> {
    fn header_blocks(&mut self, corpus: &Corpus) {
        for rows in BATCHES {
            let batch = rows.to_string();
            let rows = rows.min(corpus.blocks.len());
            let blocks = cut(&corpus.blocks, rows);
            let decode = old::run(&Operation::Decode);
            let lists: Vec<_> = blocks.iter().map(decode).collect();
            let headers = headers_in(&lists);
            let select = || Operation::Select(corpus.select.clone());
            for (job, operation, columns) in [
                ("decode", Operation::Decode, &blocks),
                ("encode", Operation::Encode, &lists),
                ("select", select(), &blocks),
                ("select from lists", select(), &lists),
                ("validate", Operation::Validate, &blocks),
            ] {
                self.compare(job, &corpus.name, &batch, &operation, columns, headers);
            }
        }
    }

    fn record_batches(&mut self, corpus: &Corpus) {
        if !self.jobs.contains(&"record batches") {
            return;
        }
        let blocks = corpus.blocks.slice(0, RECORDS.min(corpus.blocks.len()));
        let operation = Operation::RecordBatches(corpus.select[1..].to_vec());
        for (name, size) in RECORD_BATCHES {
            let columns = cut(&record_batches(&blocks, size), COLUMN_BYTES / size);
            self.compare("record batches", &corpus.name, name, &operation, &columns, blocks.len());
        }
    }

    fn long_values(&mut self, quick: bool) {
        for size in VALUE_BYTES {
            let blocks = with_values_of(size, quick);
            let blocks = cut(&blocks, blocks.len() / LONG_BATCHES);
            let lists: Vec<_> = blocks.iter().map(old::run(&Operation::Decode)).collect();
            let (rows, headers) = (blocks[0].len().to_string(), headers_in(&lists));
            self.compare("decode long values", &format!("{size} B"), &rows, &Operation::Decode, &blocks, headers);
        }
    }

    /// Times one operation of both versions on the same columns, which hold `count` headers or records.
    fn compare(
        &mut self,
        job: &str,
        corpus: &str,
        batch: &str,
        operation: &Operation,
        columns: &[ArrayRef],
        count: usize,
    ) {
        if !self.jobs.contains(&job) {
            return;
        }
        // The first is what the others are compared with. An option of the new version only, such as an output of views,
        // is one more side here.
        let versions = [("old", old::run(operation)), ("new", new::run(operation))];
        let [(_, reference), others @ ..] = &versions;
        let mut traffic = 0;
        for (place, column) in columns.iter().enumerate() {
            let expected = reference(column);
            traffic += weight(column) + weight(&expected);
            for (name, run) in others {
                let result = run(column);
                assert!(
                    is_same(&result, &expected),
                    "{job} on {corpus}: {name} differs from old in batch {place} of {batch}"
                );
            }
        }
        let mut sides: Vec<(&str, Box<dyn FnMut(usize) + '_>)> = Vec::new();
        for (name, run) in &versions {
            sides.push((name, Box::new(move |place| drop(black_box(run(black_box(&columns[place])))))));
        }
        if let Operation::Decode = operation {
            sides.push(("memcpy", Box::new(copy_of(traffic / 2, columns.len()))));
        }
        let began = cpu_time();
        (0..columns.len()).for_each(&mut sides[0].1);
        let pass = cpu_time() - began;
        let repeats = LEAST_ROUND_NS.div_ceil(pass) as usize;
        let steps = repeats * columns.len();
        let turns = (repeats as u64 * pass / TURN_NS).clamp(1, steps as u64) as usize;
        let mut taken = vec![Vec::new(); sides.len()];
        for round in 0..self.rounds {
            let mut ns = vec![0; sides.len()];
            for turn in 0..turns {
                // Each side comes after each other one equally often, as it finds the caches that the other one left.
                let mut order: Vec<_> = (0..sides.len()).collect();
                order.rotate_left((round + turn) / 2 % sides.len());
                if (round + turn) % 2 == 1 {
                    order.reverse();
                }
                for side in order {
                    // Sides are at different places of the columns: none finds in a cache what another one has read.
                    let part = (turn + side * turns / sides.len()) % turns;
                    let began = cpu_time();
                    for step in steps * part / turns..steps * (part + 1) / turns {
                        sides[side].1(step % columns.len());
                    }
                    ns[side] += cpu_time() - began;
                }
            }
            for (taken, ns) in taken.iter_mut().zip(ns) {
                taken.push(ns as f64 / (repeats * count) as f64);
            }
        }
        let ns: Value = sides.iter().zip(taken).map(|((name, _), taken)| (name.to_string(), json!(taken))).collect();
        self.found.push(json!({
            "job": job,
            "corpus": corpus,
            "batch": batch,
            "count": count,
            "traffic": traffic,
            "ns": ns,
        }));
    }
}

/// A copy of so many bytes in so many steps of one size, into one buffer that was written to before.
fn copy_of(bytes: usize, steps: usize) -> impl FnMut(usize) {
    let size = bytes / steps;
    let (from, mut to) = (vec![1u8; bytes], vec![2u8; size]);
    move |step| {
        to.copy_from_slice(black_box(&from[step * size..][..size]));
        black_box(&mut to);
    }
}

/// Nanoseconds that this thread has run for: what other programs run on the same core is not in it. A job that starts
/// threads needs a clock on the wall instead.
fn cpu_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes for the whole call, which keeps no reference to it.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    assert_eq!(code, 0, "the system has no clock of a thread's time");
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether two results hold the same. The fields of a list's structs may have been renamed between the versions.
fn is_same(result: &ArrayRef, expected: &ArrayRef) -> bool {
    let (Some(lists), Some(others)) = (result.as_list_opt::<i32>(), expected.as_list_opt::<i32>()) else {
        return result == expected;
    };
    let columns = |lists: &ListArray| lists.values().as_struct().columns().to_vec();
    lists.nulls() == others.nulls() && lists.offsets() == others.offsets() && columns(lists) == columns(others)
}

fn headers_in(lists: &[ArrayRef]) -> usize {
    lists.iter().map(|lists| lists.as_list::<i32>().values().len()).sum()
}

/// Bytes that an array refers to; of a slice only the part that is in it.
fn weight(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap()
}
