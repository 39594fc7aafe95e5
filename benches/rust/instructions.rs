//! One job on one batch, some times: what `benches/instructions.py` counts the instructions of.
//!
//! ```text
//! instructions JOB BATCH TIMES    prints the number of headers of the batch
//! ```

mod batches;

use std::env;
use std::hint::black_box;

use arrow_array::ArrayRef;
use letterhead::arrow::{Apply, Convert, Decode, Encode, Input, Operation, Validate};
use letterhead::encoding::Encoding;
use letterhead::format::Format;
use letterhead::log::OnLoss;
use letterhead::traits::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::value::ByteOrder;

use batches::{BATCHES, apply, batch, check_amounts, select_three};

/// What the jobs are done on.
struct Columns {
    serialized_rows: ArrayRef,
    lists: ArrayRef,
    iggy: ArrayRef,
    iggy_lists: ArrayRef,
}

/// What the target cannot carry is left out.
fn convert(target: Format, types: TypeOption) -> Convert {
    let write = WriteOptions { types, on_loss: OnLoss::Drop, ..Default::default() };
    Convert { target, read: Default::default(), write, on_error: Default::default() }
}

fn apply_to(operation: &impl Operation, format: Format, column: &ArrayRef) -> ArrayRef {
    format.visit(Apply(operation, Input::new(column))).unwrap().column
}

/// The jobs by their names.
fn run(job: &str, Columns { serialized_rows, lists, iggy, iggy_lists }: &Columns) -> ArrayRef {
    match job {
        "convert to kip82-typed" => apply(&convert(Format::Kip82Typed, TypeOption::Binary), serialized_rows),
        "convert to iggy" => apply(&convert(Format::Iggy, TypeOption::Binary), serialized_rows),
        "convert from iggy" => {
            let as_bits = TypeOption::Untyped(Encoding::Bytes(ByteOrder::Big));
            apply_to(&convert(Format::Kafka, as_bits), Format::Iggy, iggy)
        }
        "decode iggy" => apply_to(&Decode::default(), Format::Iggy, iggy),
        "encode iggy" => apply_to(&Encode::default(), Format::Iggy, iggy_lists),
        "decode" => apply(&Decode::default(), serialized_rows),
        "encode" => apply(&Encode::default(), lists),
        "select" => apply(&select_three(), serialized_rows),
        "select from lists" => apply(&select_three(), lists),
        "validate" => apply(&Validate::default(), serialized_rows),
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
    let lists = apply(&Decode::default(), &batch.serialized_rows);
    assert_eq!(&apply(&Encode::default(), &lists), &batch.serialized_rows);
    if name == "regular" {
        check_amounts(&apply(&select_three(), &batch.serialized_rows), &batch);
    }
    let iggy = apply(&convert(Format::Iggy, TypeOption::Binary), &batch.serialized_rows);
    let iggy_lists = apply_to(&Decode::default(), Format::Iggy, &iggy);
    let columns = Columns { serialized_rows: batch.serialized_rows, lists, iggy, iggy_lists };
    for _ in 0..times.parse().expect("a number of times") {
        black_box(run(job, black_box(&columns)));
    }
    println!("{}", batch.headers);
}
