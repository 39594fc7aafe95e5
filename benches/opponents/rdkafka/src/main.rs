//! Reads offset and the header `amount` of all records of a topic into two vectors, with rust-rdkafka.
//!
//! ```text
//! letterhead-bench-rdkafka ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets sum-of-amounts
//! ```
//!
//! Messages are borrowed from librdkafka, and headers are read in place. The time includes connecting, as that of the
//! other sides does.

use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, topic, partitions, records] = &arguments[..] else { panic!("ADDRESS TOPIC PARTITIONS RECORDS") };
    let partitions: i32 = partitions.parse().expect("a number of partitions");
    let records: usize = records.parse().expect("a number of records");

    let started = Instant::now();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("group.id", "opponent")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("queued.min.messages", "1000000")
        .set("queued.max.messages.kbytes", "1048576")
        .set("fetch.message.max.bytes", "16777216")
        .set("fetch.queue.backoff.ms", "5")
        .create()
        .expect("a consumer");
    let mut assigned = TopicPartitionList::new();
    for partition in 0..partitions {
        assigned.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&assigned).expect("an assignment");

    let (mut offsets, mut amounts) = (Vec::with_capacity(records), Vec::with_capacity(records));
    while offsets.len() < records {
        let message = consumer.poll(PATIENCE).expect("a message within 10 s").expect("a message without an error");
        offsets.push(message.offset());
        let headers = message.headers().expect("headers");
        // The last of its name, as elsewhere.
        let mut amount = None;
        for header in headers.iter() {
            if header.key == "amount" {
                amount = header.value;
            }
        }
        let amount: [u8; 8] = amount.expect("an amount").try_into().expect("eight bytes");
        amounts.push(i64::from_be_bytes(amount));
    }
    let seconds = started.elapsed().as_secs_f64();
    let (offset_sum, amount_sum): (i64, i64) = (offsets.iter().sum(), amounts.iter().sum());
    println!("{seconds} {} {offset_sum} {amount_sum}", offsets.len());
}
