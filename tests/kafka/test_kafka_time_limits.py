"""``timeout_ms`` limits calls of Kafka's reader and writer as a whole, and an interrupt ends them.

Each test fails at its limit if a part of a call has none.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.kafka import reachability
from tests.kafka.lying_broker import API_VERSIONS, METADATA, PRODUCE, Lie, LyingBroker, read, write
from tests.silent import SilentServer, interrupted, without_a_name_server

HALF_A_RESPONSE = (4000).to_bytes(4, "big") + (1).to_bytes(4, "big")
SASL = {
    "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p",
}  # fmt: skip


@pytest.mark.parametrize(("begin", "drips"), [(b"", False), (HALF_A_RESPONSE, False), (HALF_A_RESPONSE, True)])
@pytest.mark.parametrize("settings", [{}, SASL], ids=["plain", "sasl"])
def test_broker_with_incomplete_response_times_out(begin: bytes, drips: bool, settings: dict[str, str]) -> None:
    with SilentServer(begin, drips=drips) as server:
        reader = lh.read.topic("t", bootstrap_servers=f"127.0.0.1:{server.port}", timeout_ms=400, settings=settings)
        with pytest.raises(TimeoutError, match=rf"no answer from 127\.0\.0\.1:{server.port} in 0\.4 s"):
            reader.read_all()


def test_broker_without_tls_times_out() -> None:
    with SilentServer() as server:
        reader = lh.read.topic(
            "t", bootstrap_servers=f"127.0.0.1:{server.port}", timeout_ms=400, settings={"security.protocol": "SSL"}
        )
        with pytest.raises(TimeoutError, match=r"does not respond \(security protocol SSL\)"):
            reader.read_all()


@pytest.mark.parametrize("silent_about", [0, 1, 2, 3])
def test_broker_that_stops_answering_times_out(silent_about: int) -> None:
    """After the handshake: without metadata, without offsets, or without records."""
    seen: list[int] = []

    def lie(api_key: int, frame: bytes) -> bytes:
        if api_key != API_VERSIONS:
            seen.append(api_key)
        return frame if len(seen) <= silent_about else b""

    with (
        LyingBroker(lie) as broker,
        pytest.raises(TimeoutError, match=rf"no answer from {broker.address} in 2 s: {broker.address}"),
    ):
        read(broker.address, timeout_ms=2000)


@pytest.mark.parametrize("error", [5, 6, 3])  # leader not available, not the leader, unknown topic or partition
def test_persistent_temporary_error_times_out(error: int) -> None:
    def without_leader(api_key: int, frame: bytes) -> bytes:
        place = frame.find(b"lies") + 5 + 4
        return frame[:place] + error.to_bytes(2, "big") + frame[place + 2 :] if api_key in (1, 2) else frame

    lie: Lie = without_leader
    with LyingBroker(lie) as broker, pytest.raises(TimeoutError, match=rf"in 3 s: \[Error {error}\]"):
        read(broker.address, timeout_ms=3000)


def test_silent_broker_does_not_block_next_one() -> None:
    with SilentServer() as silent, LyingBroker() as broker:
        for _ in range(4):  # the order of brokers is random
            assert read(f"127.0.0.1:{silent.port},{broker.address}", timeout_ms=12_000).num_rows == 8


def test_unresolved_host_lookup_times_out() -> None:
    program = """
import letterhead as lh
try:
    lh.read.topic("t", bootstrap_servers="kafka.test:9092", timeout_ms=400).read_all()
except TimeoutError as error:
    print(error)
"""
    assert without_a_name_server(program).startswith("no answer from kafka.test:9092 in 0.4 s: ")


def test_unknown_advertised_name_raises_before_time_limit(monkeypatch) -> None:
    lie: Lie = lambda api_key, frame: frame.replace(b"127.0.0.1", b"x.invalid") if api_key == METADATA else frame  # noqa: E731
    monkeypatch.setattr(reachability, "_UNKNOWN_SECONDS", 1.0)
    with (
        LyingBroker(lie) as broker,
        pytest.raises(
            ConnectionError, match=r"^x\.invalid:\d+ cannot be reached: its address is unknown .*advertised\.l"
        ),
    ):
        read(broker.address, timeout_ms=60_000)


def test_host_resolvable_only_by_proxy_is_reached() -> None:
    with SilentServer() as proxy:
        program = f"""
import letterhead as lh
try:
    lh.read.topic(
        "t", bootstrap_servers="kafka.test:9092", timeout_ms=1000,
        settings={{"proxy.url": "socks5h://127.0.0.1:{proxy.port}"}},
    ).read_all()
except TimeoutError as error:
    print(error)
"""
        assert without_a_name_server(program).startswith("no answer from kafka.test:9092 in 1 s: ")
        assert proxy.asked.is_set()


def test_interrupt_ends_waiting_reader() -> None:
    program = "import sys, letterhead as lh; lh.read.topic('t', bootstrap_servers=sys.argv[1]).read_all()"
    with SilentServer() as server:
        assert interrupted(program, f"127.0.0.1:{server.port}", server=server) == "KeyboardInterrupt"


def test_interrupt_ends_waiting_writer() -> None:
    program = """
import sys, letterhead as lh, pyarrow as pa
lh.write.topic(pa.table({"value": ["x"]}), "t", bootstrap_servers=sys.argv[1])
"""
    with SilentServer() as server:
        assert interrupted(program, f"127.0.0.1:{server.port}", server=server) == "KeyboardInterrupt"


@pytest.mark.parametrize("drips", [False, True])
def test_writer_with_silent_broker_times_out(drips: bool) -> None:
    with (
        SilentServer(HALF_A_RESPONSE if drips else b"", drips=drips) as server,
        pytest.raises(TimeoutError, match=r"no answer from 127\.0\.0\.1:\d+ in 0\.4 s"),
    ):
        lh.write.topic(
            pa.table({"value": ["x", "y"]}), "t", bootstrap_servers=f"127.0.0.1:{server.port}", timeout_ms=400
        )


def test_writer_without_metadata_times_out() -> None:
    lie: Lie = lambda api_key, frame: b"" if api_key == METADATA else frame  # noqa: E731
    with LyingBroker(lie) as broker, pytest.raises(TimeoutError, match="does not respond"):
        lh.write.topic(pa.table({"value": ["x"]}), "lies", bootstrap_servers=broker.address, timeout_ms=400)


def test_rows_not_acknowledged_in_time_are_named() -> None:
    lie: Lie = lambda api_key, frame: b"" if api_key == PRODUCE else frame  # noqa: E731
    message = "rows? 0 and 1 more not delivered: .*does not respond.*whether the record is written is not known"
    with LyingBroker(lie) as broker, pytest.raises(lh.write.DeliveryError, match=message) as raised:
        write(broker.address, timeout_ms=400)
    assert [*raised.value.errors] == [0, 1]
