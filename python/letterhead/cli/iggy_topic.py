"""The topic of an Iggy server that `letterhead dump` reads, named by iggy://user:password@host:port/stream/topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import letterhead as lh
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.source import reason
from letterhead.errors import OffsetsGone, ProtocolError

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.iggy.connection import Address
    from letterhead.limits import Limits
    from letterhead.reader import Reader
    from letterhead.where import Condition

SCHEMES = ("iggy://", "iggy+tcp://")
ON_SCREEN = ("offset", "timestamp", "headers", "payload")
TIMEOUT_MS = 15_000


class TopicDump(NamedTuple):
    """A topic of a server, and which of its messages are read."""

    url: str
    start: str
    end: str
    errors: OnError
    limits: Limits

    def open(self, where: str | None, *, on_screen: bool) -> tuple[Reader, int]:
        """Return a reader, and the number of partitions."""
        from letterhead.iggy.client import IggyClient, IggyTopic
        from letterhead.iggy.rows import COLUMNS

        with server_errors():
            server, stream, topic = _parts(self.url)
            with IggyClient(server, TIMEOUT_MS) as client:
                count = len(client.partitions(IggyTopic(stream, topic)))
            columns = (*(() if count == 1 else ("partition",)), *ON_SCREEN) if on_screen else COLUMNS
            return self.reader(columns, None if where is None else lh.where.parse(where)), count

    def reader(self, columns: Sequence[str], where: Condition | None) -> Reader:
        """Return a reader of some columns."""
        _, stream, topic = _parts(self.url)
        return lh.read.iggy(
            urlunsplit(urlsplit(self.url)._replace(path="")), stream=stream, topic=topic, columns=columns,
            start=self.start, end=self.end, errors=self.errors, where=where, limits=self.limits, timeout_ms=TIMEOUT_MS,
        )  # fmt: skip


def _parts(url: str) -> tuple[Address, str, str]:
    """Return the server, the stream and the topic of an address."""
    from letterhead.iggy.connection import Address

    server, path = Address.parse_with_path(url)
    names = [unquote(part) for part in path.split("/")[1:]]
    if len(names) != 2 or not all(names):
        raise Failure("the address does not name a topic: iggy://user:password@host:port/stream/topic")
    return server, names[0], names[1]


@contextmanager
def server_errors() -> Iterator[None]:
    """Report refused requests, missing answers and invalid replies of the server as a failure."""
    from letterhead.iggy.connection import Refused

    try:
        with usage_errors():
            yield
    except (OffsetsGone, ProtocolError, Refused) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(reason(error)) from error
