//! The kernels on one core, with no Python: decode, select, validate, encode.
//!
//! Two batches of 16,000 rows. `regular`: five headers in the same order in every row (a trace, a schema id, a tenant, an
//! amount, a null). `vectors`: the values of the vectors, repeated: every layout differs from its neighbour. Each benchmark
//! checks its answer first. `memcpy` copies as many bytes as the decode of the batch reads and writes, into memory that
//! was touched before.

mod batches;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use letterhead::arrow::{Decode, Encode, Operation, Validate};

use batches::{BATCHES, BatchFormat, ROWS, apply, batch, check_amounts, select_three};

fn main() {
    divan::main();
}

fn bench(bencher: Bencher<'_, '_>, batch: &BatchFormat, operation: &(impl Operation + Sync), column: &ArrayRef) {
    bencher.counter(ItemsCount::new(batch.headers)).bench(|| apply(black_box(operation), black_box(column)));
}

#[divan::bench(args = BATCHES)]
fn decode(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let made = apply(&Decode::default(), &batch.serialized_rows);
    assert_eq!(apply(&Encode::default(), &made).len(), ROWS);
    assert_eq!(made.as_list::<i32>().values().len(), batch.headers);
    bench(bencher, &batch, &Decode::default(), &batch.serialized_rows);
}

#[divan::bench(args = BATCHES)]
fn encode(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let lists = apply(&Decode::default(), &batch.serialized_rows);
    assert_eq!(&apply(&Encode::default(), &lists), &batch.serialized_rows);
    bench(bencher, &batch, &Encode::default(), &lists);
}

#[divan::bench(args = BATCHES)]
fn validate(bencher: Bencher, name: &str) {
    let batch = batch(name);
    assert_eq!(apply(&Validate::default(), &batch.serialized_rows).null_count(), ROWS);
    bench(bencher, &batch, &Validate::default(), &batch.serialized_rows);
}

#[divan::bench]
fn select_three_from_bytes(bencher: Bencher) {
    let batch = batch("regular");
    check_amounts(&apply(&select_three(), &batch.serialized_rows), &batch);
    bench(bencher, &batch, &select_three(), &batch.serialized_rows);
}

#[divan::bench]
fn select_three_from_lists(bencher: Bencher) {
    let batch = batch("regular");
    let lists = apply(&Decode::default(), &batch.serialized_rows);
    check_amounts(&apply(&select_three(), &lists), &batch);
    bench(bencher, &batch, &select_three(), &lists);
}

#[divan::bench(args = BATCHES)]
fn memcpy(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let written = apply(&Decode::default(), &batch.serialized_rows).get_buffer_memory_size();
    let bytes = (batch.serialized_rows.get_buffer_memory_size() + written) / 2;
    let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
    to.copy_from_slice(&from);
    assert_eq!(to, from);
    bencher.counter(ItemsCount::new(batch.headers)).bench_local(|| {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    });
}
