"""Open the selected stores, and parse keys and times of their rows."""

from __future__ import annotations

from letterhead._value_text import parse_base64, parse_hex
from letterhead.cli.exits import Failure, as_options, usage_errors
from letterhead.cli.render import warn
from letterhead.cli.spelling import read_time_option, read_value
from letterhead.cli.state.options import Selection
from letterhead.errors import DamagedRowError, ProcessorStateError
from letterhead.state.reading.directory import StoreFiles
from letterhead.state.reading.rows import StoreReader, open_store
from letterhead.state.reading.stores import remarks
from letterhead.state.storage.keys import MAX_TIME
from letterhead.values import Value


class DamagedRows:
    """Reports and counts unreadable rows, or raises at the first."""

    def __init__(self, raises: bool) -> None:
        self._raises = raises
        self.count = 0

    def add(self, error: ProcessorStateError | DamagedRowError) -> None:
        """Report a damaged row."""
        if self._raises:
            raise error
        self.count += 1
        warn(str(error) if isinstance(error, DamagedRowError) else f"{error}: the rows after it are not read")


def open_selected(files: StoreFiles, selection: Selection) -> StoreReader:
    """Open a store; warn about an assumed type, and if another process has it open."""
    store = open_store(files, selection.store_type, selection.value_format, selection.limits)
    for remark in remarks([store]):
        warn(as_options(remark))
    return store


def parse_stored_key(text: str) -> bytes:
    """Parse a key: text, bytes after `hex:` or `base64:`, or a typed value, big-endian as in Kafka's serializers."""
    spelling, colon, rest = text.partition(":")
    if colon and spelling in ("hex", "base64"):
        with usage_errors():
            return (parse_hex if spelling == "hex" else parse_base64)(rest, spelling)
    value = read_value(text)
    if isinstance(value, Value):
        return value.bits
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Failure("the key is not UTF-8: write it as hex: and digits") from error


def parse_stored_time(option: str, text: str | None) -> int | None:
    """Parse a time that a store can hold."""
    time = read_time_option(option, text)
    if time is not None and not 0 <= time <= MAX_TIME:
        raise Failure(f"{option}: {text} is outside the times that a store can hold")
    return time
