"""The yardstick itself: the plain decoder must give the answers that Kafka's own classes gave for the samples."""

from __future__ import annotations

from benches import data, plain


def test_samples_hold_what_kafka_read() -> None:
    assert data.store_answer(len(data.store_sample())) == (data.STORE_COUNTS, data.STORE_SELECTED)
    assert data.orders_answer(len(data.orders_sample())) == (data.ORDERS_COUNTS, data.ORDERS_SELECTED)


def test_plain_encoder_writes_what_kafka_wrote() -> None:
    for message in data.store_sample():
        block, _ = plain.split_message(message)
        assert plain.encode_block(plain.decode_block(block)) == block
