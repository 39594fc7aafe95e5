"""No password reaches the terminal, whatever is wrong with the address that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.iggy.address import Address

SECRET = "s3cr3t"

ADDRESSES = [
    f"iggy://joe:{SECRET}＃1@host/x/y",
    f"iggy://joe:{SECRET}[1@host/x/y",
    f"iggy://joe:{SECRET}]1@host/x/y",
    f"iggy://joe:{SECRET}#1@host/x/y",
    f"iggy://joe:{SECRET}?1@host/x/y",
    f"iggy://joe:{SECRET}/1@host/x/y",
    f"iggy://joe:{SECRET} 1@host/x/y",
    f"iggy://joe:{SECRET}\n1@host/x/y",
    f"iggy://joe:{SECRET}\x1b1@host/x/y",
    f"iggy://joe:{SECRET}℀@host/x/y",
    f"iggy://joe:{SECRET}@host:port/x/y",
    f"iggy://joe:{SECRET}@host",
    f"iggy://joe:{SECRET}@host/x",
    f"iggy://joe:{SECRET}@host/x/y/z",
    f"iggy://joe:{SECRET}@host/x/y?{SECRET}=1",
    f"iggy://joe:{SECRET}@host/x/y?tls=true&tls=false",
    f"iggy://joe:{SECRET}@host/x/y?tls=true&%74ls=false",
    f"iggy://joe:{SECRET}@host/x/y?tls={SECRET}",
    f"iggy://joe:{SECRET}@host/x/y#tls=true",
    f"IGGY://joe:{SECRET}@127.0.0.1:1/x/y",
    f"iggy+quic://joe:{SECRET}@host/x/y",
    f"http://joe:{SECRET}@host/x/y",
    f"kafka://joe:{SECRET} 2@host/x/y",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "command",
    [
        ["read", "--timeout", "0.2"], ["decode", "-f", "kafka"], ["inspect", "-f", "kafka"], ["scan", "--timeout", "0.2"],
        ["state", "ls"], ["convert", "-f", "kafka", "-t", "iggy", "--as", "hex"], ["state", "diff", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_malformed_address_error_hides_password(command: list[str], address: str, run: Any) -> None:
    result = run(*command, address)
    assert result.code in (1, 2, 3)
    assert result.err.startswith("letterhead: ")
    assert len([line for line in result.err.splitlines() if "visible to other users" not in line]) == 1
    assert SECRET not in result.err + result.out


@pytest.mark.parametrize(
    "query", ["tls=true&tls=false", "tls=true&tls=true", "tls=true&%74ls=true", "tsl=true", "=", "tls"]
)
def test_unknown_or_repeated_address_option_is_rejected(query: str) -> None:
    with pytest.raises(ValueError, match="of the address"):
        Address.parse(f"iggy://joe:{SECRET}@host?{query}")


def test_path_after_reader_address_is_rejected() -> None:
    with pytest.raises(ValueError, match="pass the names of stream and topic apart") as raised:
        lh.read.iggy(f"iggy://joe:{SECRET}@host/a/b", stream="s", topic="t")
    assert SECRET not in str(raised.value)


def test_address_hides_password() -> None:
    address = Address.parse(f"iggy://joe:{SECRET}@host")
    assert SECRET not in repr(address) + str(address)


def test_address_in_file_list_is_hidden(run: Any, tmp_path: Path) -> None:
    result = run("read", tmp_path, f"x://joe:{SECRET}@h")
    assert SECRET not in result.err
    assert result.code == 3
