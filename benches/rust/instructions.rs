//! One job on one batch, some times: what `benches/instructions.py` counts the instructions of.
//!
//! ```text
//! instructions JOB BATCH TIMES    prints the number of headers of the batch
//! ```

mod batches;

use std::env;
use std::hint::black_box;

use arrow_array::ArrayRef;
use letterhead::arrow::{Decode, Encode, Validate};

use batches::{BATCHES, apply, batch, check_amounts, select_three};

/// The jobs by their names; one is of lists.
fn run(job: &str, cells: &ArrayRef, lists: &ArrayRef) -> ArrayRef {
    match job {
        "decode" => apply(&Decode::default(), cells),
        "encode" => apply(&Encode::default(), lists),
        "select" => apply(&select_three(), cells),
        "select from lists" => apply(&select_three(), lists),
        "validate" => apply(&Validate::default(), cells),
        other => panic!("no job {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [job, name, times] = &arguments[..] else {
        // Cargo runs it with the other benchmarks, which have nothing to do with it.
        return;
    };
    assert!(BATCHES.contains(&name.as_str()), "no batch {name}");
    let batch = batch(name);
    let lists = apply(&Decode::default(), &batch.cells);
    assert_eq!(&apply(&Encode::default(), &lists), &batch.cells);
    if name == "regular" {
        check_amounts(&apply(&select_three(), &batch.cells), &batch);
    }
    for _ in 0..times.parse().expect("a number of times") {
        black_box(run(job, black_box(&batch.cells), black_box(&lists)));
    }
    println!("{}", batch.headers);
}
