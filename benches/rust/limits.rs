//! How far from the limits of one core the kernels are, on the corpora of `benches/limits/corpus.py`, with no Python.
//!
//! ```text
//! limits batches FOLDER RESULT ROUNDS    every job on every corpus, in batches of several sizes
//! limits java    FOLDER RESULT ROUNDS    decode and encode, on the corpora and in the batches that Java is compared in
//! limits fresh   FOLDER RESULT ROUNDS    decode and encode where every output is kept
//! limits curves  FOLDER RESULT ROUNDS    the cost as rows, headers a row and bytes a value grow
//! ```
//!
//! `python -m benches.limits.measure` writes the corpora, runs this, and puts the results together. Answers come with the
//! corpora; every job is held to them before it is timed. In a round each job is timed once, so what else the machine does
//! meets all of them. One of them is `memcpy`, which copies half of the bytes that decode reads and writes.
//!
//! The library writes into no buffers but its own. `released` means that an output is dropped before the next call: whether
//! its pages come back is up to the allocator, which is the one of the Python module. `fresh` means that outputs are kept
//! until the process ends. A batch is a slice of the corpus, and a pass reads none of them twice; what is made of lists
//! reads those that a decode of the same batch made.

#![allow(clippy::cast_possible_truncation)]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs, mem};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Apply, Convert, Decode, Encode, Input, Operation, Select, Validate};
use letterhead::encoding::Encoding;
use letterhead::format::Format;
use letterhead::header::{Header, RequestedKey};
use letterhead::log::OnError;
use letterhead::op::write::EncodeMessage;
use letterhead::options::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::types::Type;
use letterhead::value::ByteOrder;
use serde_json::{Value, json};

/// With the feature, the library brings it.
#[cfg(not(feature = "python"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rows of a batch; the whole corpus is one more size.
const BATCHES: [usize; 5] = [1_000, 4_000, 16_000, 64_000, 256_000];
/// Of these, those in which Java is measured too.
const JAVA_BATCHES: [usize; 2] = [16_000, 64_000];
/// The size of a batch where only one is measured.
const BATCH: usize = 64_000;

/// The curves: rows in all, headers of a row, bytes of a value.
const ROWS: [usize; 8] = [1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000, 4_096_000, 10_240_000];
const HEADERS: [usize; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 300];
const VALUE_BYTES: [usize; 8] = [0, 16, 64, 256, 1_024, 4_096, 16_384, 65_536];
/// What a batch of generated rows has, about.
const GENERATED_HEADERS: usize = 300_000;
const GENERATED_BYTES: usize = 16 << 20;
const HEADERS_WITH_VALUES: usize = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // `cargo bench` adds an argument of its own.
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [what, folder, result, rounds] = arguments.as_slice() else {
        return Err("batches, java, fresh or curves, then FOLDER RESULT ROUNDS".into());
    };
    let index: Value = serde_json::from_str(&fs::read_to_string(format!("{folder}/corpora.json"))?)?;
    let rounds = rounds.parse()?;
    let read = |name| Corpus::read(folder, name, &index["corpora"][name]);
    let mut found = Vec::new();
    match what.as_str() {
        "batches" => {
            for name in ["A", "B", "C"] {
                found.extend(batches(&read(name)?, rounds));
            }
        }
        "java" => {
            for name in ["A", "B"] {
                found.extend(java_batches(&read(name)?, rounds));
            }
        }
        "fresh" => {
            for name in ["A", "B", "C"] {
                found.extend(fresh(&read(name)?, rounds));
            }
        }
        "curves" => found = curves(&read("A")?, rounds, index["quick"] == true),
        _ => return Err(format!("batches, java, fresh or curves, not {what}").into()),
    }
    for row in &mut found {
        row["features"] = json!(features());
    }
    fs::write(result, serde_json::to_string(&found)?)?;
    Ok(())
}

/// What this processor has of what a kernel may ask for at run time.
fn features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! note {
            ($($name:tt)*) => { $(if is_x86_feature_detected!($name) { found.push($name); })* };
        }
        note!("avx2" "bmi2" "avx512f" "avx512bw" "avx512vl" "avx512vbmi" "avx512vbmi2");
    }
    #[cfg(target_arch = "aarch64")]
    found.push("neon");
    found
}

/// Header blocks, what to select from them, and what they hold.
struct Corpus {
    name: &'static str,
    serialized_rows: ArrayRef,
    select: Select,
    holds: Value,
}

impl Corpus {
    fn read(folder: &str, name: &'static str, known: &Value) -> Outcome<Corpus> {
        let bytes = fs::read(format!("{folder}/{name}.bin"))?;
        let number = |at: usize| i32::from_be_bytes(bytes[4 * at..][..4].try_into().unwrap()) as usize;
        let rows = number(0);
        let offsets = OffsetBuffer::from_lengths((1..=rows).map(number));
        let serialized_rows = BinaryArray::new(offsets, Buffer::from_vec(bytes).slice(4 + 4 * rows), None);
        let selections = known["select"].as_array().ok_or("corpora.json says which headers to select")?;
        let selection = |pair: &Value| {
            Selection::new(
                pair[0].as_str().unwrap(),
                RequestedKey::Text(pair[0].as_str().unwrap().into()),
                Type::parse(pair[1].as_str().unwrap()).unwrap(),
                Repeat::Last,
            )
        };
        Ok(Corpus {
            name,
            serialized_rows: Arc::new(serialized_rows),
            select: Select { selections: selections.iter().map(selection).collect(), ..Default::default() },
            holds: known["holds"][rows.to_string()].clone(),
        })
    }

    fn headers(&self) -> usize {
        self.holds["headers"].as_u64().unwrap() as usize
    }

    /// Holds what decode and select gave for all rows to what the corpus holds.
    fn check(&self, decoded: &[ArrayRef], selected: &[ArrayRef]) {
        let held: Vec<_> = decoded.iter().map(held).collect();
        let total = |place: usize| held.iter().map(|each| each[place]).sum::<usize>();
        let names = ["headers", "key_bytes", "value_bytes", "nulls"];
        for (place, name) in names.into_iter().enumerate() {
            assert_eq!(json!(total(place)), self.holds[name], "corpus {}: {name}", self.name);
        }
        for (place, expected) in self.holds["selected"].as_array().unwrap().iter().enumerate() {
            let sums: Vec<_> = selected.iter().map(|each| count_and_sum(each.as_struct().column(place))).collect();
            let count: usize = sums.iter().map(|(count, _)| count).sum();
            let sum: i64 = sums.iter().map(|(_, sum)| sum).sum();
            assert_eq!(json!([count, sum]), *expected, "corpus {}: column {place}", self.name);
        }
    }
}

/// Headers, bytes of keys, bytes of values and nulls.
fn held(lists: &ArrayRef) -> [usize; 4] {
    let headers = lists.as_list::<i32>().values().as_struct();
    let (keys, values) = (headers.column(0).as_string::<i32>(), headers.column(1).as_binary::<i32>());
    let span = |offsets: &[i32]| (offsets[offsets.len() - 1] - offsets[0]) as usize;
    [headers.len(), span(keys.value_offsets()), span(values.value_offsets()), values.null_count()]
}

/// How many values there are, and their sum, or the sum of their lengths.
fn count_and_sum(column: &ArrayRef) -> (usize, i64) {
    let sum = match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().flatten().map(i64::from).sum(),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().flatten().sum(),
        DataType::Utf8 => column.as_string::<i32>().iter().flatten().map(|text| text.len() as i64).sum(),
        _ => column.as_binary::<i32>().iter().flatten().map(|bytes| bytes.len() as i64).sum(),
    };
    (column.len() - column.null_count(), sum)
}

fn apply(operation: &impl Operation, column: &ArrayRef) -> ArrayRef {
    apply_to(Format::Kafka, operation, column)
}

fn apply_to(format: Format, operation: &impl Operation, column: &ArrayRef) -> ArrayRef {
    let made = format.visit(Apply(operation, Input::new(column))).unwrap();
    assert_eq!(made.until, column.len());
    made.column
}

fn apply_all(operation: &impl Operation, batches: &[ArrayRef]) -> Vec<ArrayRef> {
    batches.iter().map(|batch| apply(operation, batch)).collect()
}

fn convert(target: Format, types: TypeOption) -> Convert {
    let write = WriteOptions { types, ..Default::default() };
    Convert { target, read: Default::default(), write, on_error: OnError::Raise }
}

/// What a job took: nanoseconds, and pages that the system had to find for it.
struct Taken {
    ns: f64,
    errors: u64,
}

/// One job on one set of batches.
struct Job<'a> {
    name: &'static str,
    batch: usize,
    /// Bytes of all batches, and of what is made of them.
    reads: usize,
    writes: usize,
    is_one_call: bool,
    run: Box<dyn FnMut() + 'a>,
    /// Of each round.
    taken: Vec<Taken>,
}

impl<'a> Job<'a> {
    /// A operation, and what it made of the batches.
    fn new(name: &'static str, operation: impl Operation + 'a, batches: &'a [ArrayRef], made: &[ArrayRef]) -> Self {
        let run = move || {
            for batch in batches {
                black_box(apply(&operation, black_box(batch)));
            }
        };
        let batch = batches[0].len();
        let (reads, writes, is_one_call) = (weight(batches), weight(made), batches.len() == 1);
        Job { name, batch, reads, writes, is_one_call, run: Box::new(run), taken: Vec::new() }
    }

    /// A copy of as many bytes as a decode of each batch reads and writes in the mean, into one buffer that was touched.
    fn memcpy(batches: &[ArrayRef], lists: &[ArrayRef], from: &'a [u8]) -> Self {
        let half = (weight(batches) + weight(lists)) / 2;
        let step = half.div_ceil(batches.len());
        let mut to = vec![2u8; step];
        let run = move || {
            for part in from[..half].chunks(step) {
                to[..part.len()].copy_from_slice(black_box(part));
                black_box(&mut to);
            }
        };
        let batch = batches[0].len();
        let is_one_call = batches.len() == 1;
        Job { name: "memcpy", batch, reads: half, writes: half, is_one_call, run: Box::new(run), taken: Vec::new() }
    }

    fn time(&mut self) {
        if self.is_one_call {
            // Of many calls nearly all follow one like them, whose memory they get; so does this one, then.
            (self.run)();
        }
        let ((), taken) = timed(&mut self.run);
        self.taken.push(taken);
    }

    fn row(&self, headers: usize) -> Value {
        let ns: Vec<_> = self.taken.iter().map(|taken| taken.ns / headers as f64).collect();
        let errors: Vec<_> = self.taken.iter().map(|taken| taken.errors).collect();
        let Job { name, batch, reads, writes, .. } = self;
        json!({
            "job": name,
            "batch": batch,
            "headers": headers,
            "reads": reads,
            "writes": writes,
            "ns": ns,
            "faults": errors,
        })
    }
}

/// Bytes that arrays refer to, of slices only the part that is theirs.
fn weight(arrays: &[ArrayRef]) -> usize {
    arrays.iter().map(|array| array.to_data().get_slice_memory_size().unwrap()).sum()
}

fn cut(column: &ArrayRef, rows: usize) -> Vec<ArrayRef> {
    let starts = (0..column.len()).step_by(rows);
    starts.map(|start| column.slice(start, rows.min(column.len() - start))).collect()
}

fn batches(corpus: &Corpus, rounds: usize) -> Vec<Value> {
    let rows = corpus.serialized_rows.len();
    timed_in(corpus, BATCHES.into_iter().filter(|size| *size < rows).chain([rows]), rounds, |_| true)
}

fn java_batches(corpus: &Corpus, rounds: usize) -> Vec<Value> {
    // A small corpus is one batch.
    let sizes = JAVA_BATCHES.map(|size| size.min(corpus.serialized_rows.len()));
    timed_in(corpus, sizes, rounds, |job| matches!(job, "decode" | "encode"))
}

fn timed_in(
    corpus: &Corpus,
    sizes: impl IntoIterator<Item = usize>,
    rounds: usize,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Value> {
    let sets: Vec<_> = sizes
        .into_iter()
        .map(|size| {
            let serialized_rows = cut(&corpus.serialized_rows, size);
            let lists = apply_all(&Decode::default(), &serialized_rows);
            (serialized_rows, lists)
        })
        .collect();
    // Smaller batches have more ends.
    let most = sets.iter().map(|(serialized_rows, lists)| weight(serialized_rows) + weight(lists)).max();
    let from = vec![1; most.unwrap_or_default() / 2];
    let mut jobs: Vec<_> =
        sets.iter().flat_map(|(serialized_rows, lists)| jobs(corpus, serialized_rows, lists, &from)).collect();
    jobs.retain(|job| wanted(job.name));
    for _ in 0..rounds {
        jobs.iter_mut().for_each(Job::time);
    }
    jobs.iter().map(|job| placed(job.row(corpus.headers()), corpus, "released")).collect()
}

/// All jobs on these batches. What they make is held to what the corpus holds; of the one size in which everything is
/// measured, so is what there is no number for.
fn jobs<'a>(corpus: &Corpus, serialized_rows: &'a [ArrayRef], lists: &'a [ArrayRef], from: &'a [u8]) -> Vec<Job<'a>> {
    let select = &corpus.select;
    let selected = apply_all(select, serialized_rows);
    corpus.check(lists, &selected);
    let errors = apply_all(&Validate::default(), serialized_rows);
    assert!(errors.iter().all(|errors| errors.null_count() == errors.len()), "corpus {}: validate", corpus.name);
    let mut jobs = vec![
        Job::memcpy(serialized_rows, lists, from),
        Job::new("decode", Decode::default(), serialized_rows, lists),
        Job::new("encode", Encode::default(), lists, serialized_rows),
        Job::new("select", select.clone(), serialized_rows, &selected),
        Job::new("select from lists", select.clone(), lists, &selected),
        Job::new("validate", Validate::default(), serialized_rows, &errors),
    ];
    if serialized_rows[0].len() == BATCH.min(corpus.serialized_rows.len()) {
        assert!(apply_all(&Encode::default(), lists) == serialized_rows, "corpus {}: encode", corpus.name);
        assert!(apply_all(select, lists) == selected, "corpus {}: select from lists", corpus.name);
        let to_typed = convert(Format::Kip82Typed, TypeOption::Binary);
        let typed = apply_all(&to_typed, serialized_rows);
        let to_kafka = convert(Format::Kafka, TypeOption::Untyped(Encoding::Bytes(ByteOrder::Big)));
        let back = typed.iter().map(|batch| apply_to(Format::Kip82Typed, &to_kafka, batch));
        assert!(back.eq(serialized_rows.iter().cloned()), "corpus {}: convert and back", corpus.name);
        jobs.push(Job::new("convert", to_typed, serialized_rows, &typed));
    }
    jobs
}

fn placed(mut row: Value, corpus: &Corpus, buffers: &str) -> Value {
    row["corpus"] = json!(corpus.name);
    row["rows"] = json!(corpus.serialized_rows.len());
    row["buffers"] = json!(buffers);
    row
}

/// Outputs that are kept: nothing is freed in this process, so every page that is written to is a new one.
fn fresh(corpus: &Corpus, rounds: usize) -> Vec<Value> {
    let rows = corpus.serialized_rows.len();
    let mut found = Vec::new();
    let mut kept = Vec::new();
    for size in [rows, BATCH.min(rows)] {
        let serialized_rows = cut(&corpus.serialized_rows, size);
        let mut taken = [("memcpy", Vec::new()), ("decode", Vec::new()), ("encode", Vec::new())];
        let mut traffic = (0, 0);
        for _ in 0..rounds {
            let [copies, decodes, encodes] = &mut taken;
            let (lists, taken) = timed(|| apply_all(&Decode::default(), &serialized_rows));
            decodes.1.push(taken);
            let (written, taken) = timed(|| apply_all(&Encode::default(), &lists));
            encodes.1.push(taken);
            assert!(written == serialized_rows, "corpus {}: encode", corpus.name);
            traffic = (weight(&serialized_rows), weight(&lists));
            let from = vec![1u8; (traffic.0 + traffic.1) / 2];
            let (copy, taken) = timed(|| {
                from.chunks(from.len().div_ceil(serialized_rows.len())).map(<[u8]>::to_vec).collect::<Vec<_>>()
            });
            copies.1.push(taken);
            kept.push((lists, written, from, copy));
        }
        let half = (traffic.0 + traffic.1) / 2;
        for ((name, taken), (reads, writes)) in taken.into_iter().zip([(half, half), traffic, (traffic.1, traffic.0)]) {
            let run: Box<dyn FnMut()> = Box::new(|| ());
            let job = Job { name, batch: size, reads, writes, is_one_call: false, run, taken };
            found.push(placed(job.row(corpus.headers()), corpus, "fresh"));
        }
    }
    mem::forget(kept);
    found
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let (before, began) = (errors(), Instant::now());
    let made = work();
    let ns = began.elapsed().as_nanos() as f64;
    (made, Taken { ns, errors: errors() - before })
}

/// Pages that the system had to find for this process so far; 0 where it does not say.
fn errors() -> u64 {
    let said = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program comes before, in brackets, and may hold anything.
    let mut fields = said.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.nth(7).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn curves(corpus: &Corpus, rounds: usize, quick: bool) -> Vec<Value> {
    let least = |most: usize, few: usize| if quick { few } else { most };
    let mut found = Vec::new();
    for rows in ROWS.into_iter().filter(|rows| *rows <= least(usize::MAX, 4_000)) {
        let batch = rows.min(BATCH).min(corpus.serialized_rows.len());
        let mut serialized_rows = cut(&corpus.serialized_rows, batch);
        serialized_rows.pop_if(|last| last.len() < batch);
        // Few rows are timed in several places of the corpus, as a clock is too coarse for them. Many begin anew at its end.
        let count = rows.max(BATCH) / batch;
        found.extend(curve("rows", rows, &serialized_rows, count, &corpus.select, rounds));
    }
    for headers in HEADERS.into_iter().filter(|headers| *headers <= least(usize::MAX, 100)) {
        let serialized_rows = generated(least(GENERATED_HEADERS, 600) / headers, headers, 16);
        found.extend(curve("headers", headers, &[serialized_rows], 1, &generated_select(), rounds));
    }
    for bytes in VALUE_BYTES {
        let each = HEADERS_WITH_VALUES * (bytes + 16);
        let serialized_rows =
            generated((least(GENERATED_BYTES, 0) / each).clamp(2, 20_000), HEADERS_WITH_VALUES, bytes);
        found.extend(curve("value bytes", bytes, &[serialized_rows], 1, &generated_select(), rounds));
    }
    found
}

/// Rows of so many headers, with keys of 12 bytes.
fn generated(rows: usize, headers: usize, value_bytes: usize) -> ArrayRef {
    let keys: Vec<_> = (0..headers).map(|index| format!("header-{index:05}")).collect();
    let row = |row: usize| {
        let value = vec![row as u8; value_bytes];
        let header = |index: usize| Header {
            index,
            key: keys[index].as_str().into(),
            value_type: None,
            value: Some(value.as_slice()),
            value_offset: None,
        };
        let message = EncodeMessage {
            headers: Some((0..headers).map(header).collect()),
            fields: vec![],
            options: Default::default(),
        };
        message.encode(Format::Kafka.info()).unwrap().unwrap()
    };
    let serialized_rows: Vec<_> = (0..rows).map(row).collect();
    Arc::new(BinaryArray::from_iter_values(serialized_rows))
}

fn generated_select() -> Select {
    let selection = |index: usize| {
        Selection::new(
            index.to_string(),
            RequestedKey::Text(format!("header-{index:05}")),
            Type::parse("binary").unwrap(),
            Repeat::Last,
        )
    };
    Select { selections: (0..3).map(selection).collect(), ..Default::default() }
}

/// One point of a curve: the first `count` of these batches, again from the first where there are fewer.
fn curve(
    name: &str,
    at: usize,
    serialized_rows: &[ArrayRef],
    count: usize,
    select: &Select,
    rounds: usize,
) -> Vec<Value> {
    let lists = apply_all(&Decode::default(), serialized_rows);
    let written = apply_all(&Encode::default(), &lists);
    assert!(written == serialized_rows, "{name} {at}: encode");
    let selected = apply_all(select, serialized_rows);
    assert!(apply_all(select, &lists) == selected, "{name} {at}: select from lists");
    let errors = apply_all(&Validate::default(), serialized_rows);
    assert!(errors.iter().all(|errors| errors.null_count() == errors.len()), "{name} {at}: validate");
    let again = |arrays: &[ArrayRef]| arrays.iter().cycle().take(count).cloned().collect::<Vec<_>>();
    let [serialized_rows, lists, selected, errors] = [serialized_rows, &lists, &selected, &errors].map(again);
    let mut jobs = [
        Job::new("decode", Decode::default(), &serialized_rows, &lists),
        Job::new("encode", Encode::default(), &lists, &serialized_rows),
        Job::new("select", select.clone(), &serialized_rows, &selected),
        Job::new("validate", Validate::default(), &serialized_rows, &errors),
    ];
    for _ in 0..rounds {
        jobs.iter_mut().for_each(Job::time);
    }
    let headers = lists.iter().map(|lists| held(lists)[0]).sum();
    let rows: usize = serialized_rows.iter().map(|serialized_rows| serialized_rows.len()).sum();
    let point = |job: &Job| {
        let mut row = job.row(headers);
        row["curve"] = json!(name);
        row["at"] = json!(at);
        row["rows"] = json!(rows);
        row
    };
    jobs.iter().map(point).collect()
}
