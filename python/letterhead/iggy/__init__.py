"""Messages and headers of Apache Iggy, with the API of Iggy's own library.

The classes represent header keys and values with their kinds, messages to send, polled messages and requests. They
also read and write the JSON of the HTTP interface.

Methods share the following options.

Other Parameters
----------------
format : {"iggy-2023", "iggy"}, default "iggy-2023"
    The format of headers: ``iggy-2023`` for releases 0.0.30 to 0.8.1, with text keys, or ``iggy`` since 0.8.2, where
    keys have kinds. With ``iggy-2023``, requests and replies have the form of releases up to 0.6; with ``iggy``, the
    form of 0.11 and later. The form of :class:`PollMessages` changed with 0.8. Methods that read headers or JSON also accept
    ``iggy-auto``, which detects the format.
validate : bool, default True
    On reading, whether to raise for wrong checksums and unreadable headers. If False, wrong checksums are returned
    unchanged, and unreadable headers as bytes.
canonical : bool, default False
    On writing, whether to sort headers as :meth:`HeaderMap.canonical` does.

Examples
--------
>>> from letterhead.iggy import HeaderMap, HeaderValue, Identifier, Message, Partitioning, SendMessages
>>> headers = HeaderMap()
>>> headers["key 1"] = HeaderValue.from_str("value1")
>>> headers["key-2"] = HeaderValue.from_bool(True)
>>> headers["key_3"] = HeaderValue.from_uint64(123456)
>>> headers["key_3"].as_uint64()
123456
>>> request = SendMessages(
...     Identifier.numeric(1),
...     Identifier.named("sample"),
...     Partitioning.balanced(),
...     [Message(None, b"hello-world", headers)],
... )
>>> len(request.to_bytes())
108
"""

from __future__ import annotations

from letterhead.iggy.errors import iggy_code
from letterhead.iggy.fields import HeaderKey, HeaderValue
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.kinds import HeaderKind
from letterhead.iggy.message import Message
from letterhead.iggy.poll import Consumer, PollingStrategy, PollMessages
from letterhead.iggy.polled import MessageState, PolledMessage, PolledMessages
from letterhead.iggy.request import SendMessages
from letterhead.iggy.routing import Identifier, Partitioning

__all__ = [
    "Consumer",
    "HeaderKey",
    "HeaderKind",
    "HeaderMap",
    "HeaderValue",
    "Identifier",
    "Message",
    "MessageState",
    "Partitioning",
    "PollMessages",
    "PolledMessage",
    "PolledMessages",
    "PollingStrategy",
    "SendMessages",
    "iggy_code",
]


def __dir__() -> list[str]:
    return __all__
