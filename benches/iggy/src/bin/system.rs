//! The crates with the allocator of the system.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    letterhead_bench_iggy::run("system")
}
