//! The crates with the allocator that letterhead's wheel has.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    letterhead_bench_iggy::run("mimalloc")
}
