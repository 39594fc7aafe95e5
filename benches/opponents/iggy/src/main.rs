//! A poll loop of Apache Iggy's Rust client that decodes the headers of every message into its map.
//!
//! ```text
//! letterhead-bench-iggy-poll ADDRESS USER PASSWORD STREAM TOPIC MESSAGES COUNT
//! ```
//!
//! It polls partition 0 from its first message, COUNT messages a request, and looks up `tenant`, `retry` and `ratio` in
//! each map. It prints `wall_ns cpu_ns messages payload_bytes tenant_bytes retry ratio`: the times from connecting to the
//! last message, then how many messages there were, and sums of what was read. `benches/iggy_server.py` checks the sums.

use std::env;
use std::error::Error;
use std::time::Instant;

use iggy::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, user, password, stream, topic, messages, count] = arguments.as_slice() else {
        return Err("ADDRESS USER PASSWORD STREAM TOPIC MESSAGES COUNT".into());
    };
    let (messages, count): (u64, u32) = (messages.parse()?, count.parse()?);
    let (stream, topic) = (Identifier::named(stream)?, Identifier::named(topic)?);
    let consumer = Consumer::new(Identifier::numeric(1)?);
    let [tenant, retry, ratio] = ["tenant", "retry", "ratio"].map(|key| HeaderKey::try_from(key).expect("a key"));

    let (wall, cpu) = (Instant::now(), cpu_ns());
    let client = IggyClient::builder().with_tcp().with_server_address(address.clone()).build()?;
    client.connect().await?;
    client.login_user(user, password).await?;
    let mut sums = Sums::default();
    while sums.messages < messages {
        let from = PollingStrategy::offset(sums.messages);
        let polled = client.poll_messages(&stream, &topic, Some(0), &consumer, &from, count, false).await?;
        if polled.messages.is_empty() {
            return Err(format!("no messages at offset {}", sums.messages).into());
        }
        for message in &polled.messages {
            let map = message.user_headers_map()?.ok_or("a message without headers")?;
            let value = |key| map.get(key).ok_or("a header is missing");
            sums.messages += 1;
            sums.payload += message.payload.len();
            sums.tenant += value(&tenant)?.as_str()?.len();
            sums.retry += i64::from(value(&retry)?.as_int32()?);
            sums.ratio += value(&ratio)?.as_float64()?;
        }
    }
    let (wall, cpu) = (wall.elapsed().as_nanos(), cpu_ns() - cpu);
    let Sums { messages, payload, tenant, retry, ratio } = sums;
    println!("{wall} {cpu} {messages} {payload} {tenant} {retry} {ratio}");
    Ok(())
}

#[derive(Default)]
struct Sums {
    messages: u64,
    payload: usize,
    tenant: usize,
    retry: i64,
    ratio: f64,
}

/// The processor time of this process.
fn cpu_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and `time` outlives the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "no clock of the process");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
