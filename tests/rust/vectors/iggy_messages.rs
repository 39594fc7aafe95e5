//! Messages that the crates of Apache Iggy wrote, and recorded traffic between real clients and servers.

use letterhead::error::Code;
use letterhead::format::Format;
use letterhead::formats::checksum::crc32;
use letterhead::options::WriteOptions;
use serde_json::Value;

use super::iggy::{assert_sizes_show, heads, sorted};
use super::{array, bytes, lines};
use crate::common::{self, Head, Held, Message, STRICT};

/// Converts an id, which is a number in these vectors, to bytes.
fn id(value: &Value) -> Held {
    let number: u128 = value.as_str().expect("a number as text").parse().expect("a number");
    Held::Bytes(number.to_be_bytes().to_vec())
}

fn count(value: &Value) -> Held {
    Held::Number(value.as_u64().expect("a number").into())
}

fn payload(value: &Value) -> Held {
    Held::Bytes(bytes(value))
}

/// An empty list of headers and no headers are the same bytes.
fn headers(line: &Value) -> Option<Vec<Head>> {
    Some(if line["headers"].is_null() { vec![] } else { heads(&line["headers"]) })
}

/// A sent message of the older layout.
fn sent(line: &Value) -> Message {
    let fields = vec![id(&line["message_id"]), payload(&line["payload"])];
    Message { headers: headers(line), fields }
}

#[test]
fn seed_messages() {
    let lines = lines("iggy_seed_messages");
    assert_eq!(lines.len(), 72);
    for line in &lines {
        let serialized = bytes(&line["bytes"]);
        match line["op"].as_str().expect("an op") {
            "message" => {
                let expected = sent(line);
                assert_eq!(
                    common::read(Format::IggyMessage2023, &serialized, STRICT),
                    Ok(vec![expected.clone()]),
                    "{line}"
                );
                let written = common::write(Format::IggyMessage2023, &expected, WriteOptions::default());
                assert_eq!(written, Ok(Some(serialized)), "{line}");
            }
            "polled" => {
                let fields = vec![
                    count(&line["offset"]),
                    Held::Text(line["state"].as_str().expect("a state").into()),
                    count(&line["timestamp"]),
                    id(&line["message_id"]),
                    count(&line["checksum"]),
                    payload(&line["payload"]),
                ];
                polled(&serialized, Message { headers: headers(line), fields });
            }
            "send_messages" => {
                let expected: Vec<_> = array(&line["messages"]).iter().map(sent).collect();
                assert_eq!(messages_sent(&serialized), expected, "{line}");
            }
            other => panic!("{other}: {line}"),
        }
    }
}

/// Compares a polled message. The checksums of these vectors are wrong; with the correct checksum, the message is read.
fn polled(serialized: &[u8], mut expected: Message) {
    let Some(Held::Bytes(payload)) = expected.fields.last() else { panic!("a payload") };
    let made = crc32(payload);
    let error = common::read(Format::IggyPolled2023, serialized, STRICT).expect_err("refused");
    assert_eq!((error.code, error.byte), (Code::BadCrc, Some(CHECKSUM_OFFSET)));
    let mut serialized = serialized.to_vec();
    serialized[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 4].copy_from_slice(&made.to_le_bytes());
    expected.fields[4] = Held::Number(made.into());
    assert_eq!(common::read(Format::IggyPolled2023, &serialized, STRICT), Ok(vec![expected]));
}

/// Offset of the checksum of a polled message, after offset, state, timestamp and id.
const CHECKSUM_OFFSET: usize = 33;

/// Messages of the send command of the older layout, after its stream, topic and partitioning. Each of these three is a
/// code, a length and bytes of that length.
fn messages_sent(mut body: &[u8]) -> Vec<Message> {
    for _ in 0..3 {
        body = &body[2 + usize::from(body[1])..];
    }
    let mut messages = vec![];
    while !body.is_empty() {
        let len = |at: usize| u32::from_le_bytes(*body[at..].first_chunk().expect("four bytes")) as usize;
        let headers_len = len(16);
        let whole = 24 + headers_len + len(20 + headers_len);
        messages.extend(common::read(Format::IggyMessage2023, &body[..whole], STRICT).expect("whole"));
        body = &body[whole..];
    }
    messages
}

#[test]
fn tlv_messages() {
    let lines = lines("iggy_tlv_messages");
    assert_eq!(lines.len(), 48);
    for line in &lines {
        let serialized = bytes(&line["bytes"]);
        if line["op"] == "message64" {
            let fields = vec![
                count(&line["checksum"]),
                id(&line["message_id"]),
                count(&line["offset"]),
                count(&line["timestamp"]),
                count(&line["origin_timestamp"]),
                payload(&line["payload"]),
            ];
            let expected = Message { headers: headers(line), fields };
            assert_eq!(common::read(Format::IggyMessage, &serialized, STRICT), Ok(vec![expected.clone()]), "{line}");
            let written = common::write(Format::IggyMessage, &expected, WriteOptions::default());
            assert_eq!(written, Ok(Some(serialized)), "{line}");
        } else {
            let batch = &serialized[line["batch_at"].as_u64().expect("a place") as usize..];
            let read =
                common::read(Format::IggyBatch, batch, STRICT).unwrap_or_else(|error| panic!("{error:?}: {line}"));
            assert_eq!(read.len(), array(&line["messages"]).len(), "{line}");
            for (index, (message, told)) in read.iter().zip(array(&line["messages"])).enumerate() {
                assert_eq!(message.headers, headers(told), "{line}");
                let [offset, _, origin, id_of, _, payload_of] = &message.fields[..] else { panic!("six fields") };
                assert_eq!(*offset, Held::Number(index as i128), "{line}");
                assert_eq!(*origin, count(&told["origin_timestamp"]), "{line}");
                assert_eq!((id_of, payload_of), (&id(&told["message_id"]), &payload(&told["payload"])), "{line}");
            }
        }
    }
}

/// Number of bytes before the body of a request or a response of the later layout.
const FRAME_HEADER_LEN: usize = 256;

/// Payload of each message as text, and its number of headers.
fn outline(messages: &[Message]) -> Vec<(String, usize)> {
    let line = |message: &Message| match message.fields.last() {
        Some(Held::Bytes(payload)) => (String::from_utf8_lossy(payload).into_owned(), message.heads().len()),
        other => panic!("{other:?}"),
    };
    messages.iter().map(line).collect()
}

fn outlined(lines: &[(&str, usize)]) -> Vec<(String, usize)> {
    lines.iter().map(|(text, count)| (text.to_string(), *count)).collect()
}

#[test]
fn tlv_wire_capture() {
    let lines = lines("iggy_wire_capture");
    assert_eq!(lines.len(), 4);
    let told = [("hello", 15), ("world", 8), ("no headers", 0)];

    let body = bytes(&lines[0]["request"]).split_off(FRAME_HEADER_LEN);
    let metadata_len = u32::from_le_bytes(*body.first_chunk().expect("a length")) as usize;
    let sent = common::read(Format::IggyBatch, &body[4 + metadata_len..], STRICT).expect("whole");
    assert_eq!(outline(&sent), outlined(&told));

    // The partition, the offset and the count before the batches belong to the format.
    let body = bytes(&lines[1]["response"]).split_off(FRAME_HEADER_LEN);
    let polled = common::read(Format::IggyBatch, &body, STRICT).expect("whole");
    // The same messages were sent twice.
    assert_eq!(outline(&polled), outlined(&[told, told].concat()));
    let offsets: Vec<_> = polled.iter().map(|message| message.fields[0].clone()).collect();
    assert_eq!(offsets, [0, 1, 2, 3, 4, 5].map(Held::Number));
    let headers = |messages: &[Message]| messages.iter().map(|message| message.headers.clone()).collect::<Vec<_>>();
    assert_eq!(headers(&polled[..3]), headers(&sent));
    assert_eq!(headers(&polled[3..]), headers(&sent));
}

#[test]
fn seed_wire_capture() {
    let lines = lines("iggy_wire_capture");
    let told = [("hello-world", 1), ("all kinds", 15), ("none", 0), ("wrong size for kind", 1), ("empty map", 0)];
    // A length and a code precede the body.
    let sent = messages_sent(&bytes(&lines[2]["request"])[8..]);
    assert_eq!(outline(&sent), outlined(&told));
    // A status and a length precede the body, then the partition, the offset and the count of the poll.
    let polled = common::read(Format::IggyPolled2023, &bytes(&lines[3]["response"])[24..], STRICT).expect("whole");
    assert_eq!(outline(&polled), outlined(&told));
    for (sent, polled) in sent.iter().zip(&polled) {
        // Headers have no order in the client's map.
        assert_eq!(sorted(sent.heads().to_vec()), sorted(polled.heads().to_vec()));
    }
    assert_eq!(sent.iter().map(|message| assert_sizes_show(message.heads())).sum::<usize>(), 1);
}
