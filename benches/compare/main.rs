//! Runs two versions of the library in one process, in alternating turns.
//!
//! ```text
//! compare FOLDER RESULT ROUNDS CORPORA JOBS      lists are separated by commas; the names are those in the result
//! ```
//!
//! `benches/compare.py` builds this, writes the corpora, runs it and prints what it measured.
//!
//! In a round each version runs a job once over all batches, and the version that begins changes with every round. An
//! output is dropped before the next call. The result of each version is compared before anything is timed.

mod inputs;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use std::{env, fs};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use serde_json::{Value, json};

use inputs::{Corpus, cut, record_batches, with_values_of};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod old {
    use letterhead_old as letterhead;
    include!("jobs.rs");
}

mod new {
    use letterhead_new as letterhead;
    include!("jobs.rs");
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

/// Bytes of a record batch, and of those that a segment's reader passes in one column.
const RECORD_BATCHES: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("16 KiB", 16 << 10), ("1 MiB", 1 << 20)];
const COLUMN_BYTES: usize = 4 << 20;
const RECORDS: usize = 128_000;

/// A pass over fewer headers or records than these is repeated, but no more than eight times: a pass should take
/// milliseconds.
const LEAST_COUNT: usize = 500_000;
const MOST_REPEATS: usize = 8;

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
            let blocks = [with_values_of(size, quick)];
            let headers = headers_in(&[old::run(&Operation::Decode)(&blocks[0])]);
            let name = format!("{size} B");
            self.compare(
                "decode long values",
                &name,
                &blocks[0].len().to_string(),
                &Operation::Decode,
                &blocks,
                headers,
            );
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
                assert!(*result == *expected, "{job} on {corpus}: {name} differs from old in batch {place} of {batch}");
            }
        }
        let repeats = LEAST_COUNT.div_ceil(count).min(MOST_REPEATS);
        let mut sides: Vec<(&str, Box<dyn FnMut() + '_>)> = Vec::new();
        for (name, run) in &versions {
            let pass = move || {
                for column in columns {
                    drop(black_box(run(black_box(column))));
                }
            };
            sides.push((name, Box::new(pass)));
        }
        if let Operation::Decode = operation {
            sides.push(("memcpy", Box::new(copy_of(traffic / 2, columns.len()))));
        }
        let mut taken = vec![Vec::new(); sides.len()];
        for round in 0..self.rounds {
            let mut order: Vec<_> = (0..sides.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                let pass = &mut sides[place].1;
                if columns.len() == 1 {
                    // A long run of calls finds the memory of the call before it; so does a single one, then.
                    pass();
                }
                let began = Instant::now();
                for _ in 0..repeats {
                    pass();
                }
                taken[place].push(began.elapsed().as_nanos() as f64 / (repeats * count) as f64);
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

/// A copy of so many bytes in so many steps, into one buffer that was written to before.
fn copy_of(bytes: usize, steps: usize) -> impl FnMut() {
    let step = bytes.div_ceil(steps);
    let (from, mut to) = (vec![1u8; bytes], vec![2u8; step]);
    move || {
        for part in from.chunks(step) {
            to[..part.len()].copy_from_slice(black_box(part));
            black_box(&mut to);
        }
    }
}

fn headers_in(lists: &[ArrayRef]) -> usize {
    lists.iter().map(|lists| lists.as_list::<i32>().values().len()).sum()
}

/// Bytes that an array refers to; of a slice only the part that is in it.
fn weight(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap()
}
