"""Message headers of Apache Iggy, by the names its own library has for them.

The byte work is that of the formats ``iggy``, ``iggy-2023``, ``iggy-polled-2023`` and ``iggy-batch``; here are the
classes around it: keys and values with their kinds, messages as they are sent and polled, and the JSON of the HTTP
interface. A ``format`` says which of the two ways of writing headers is meant: ``"iggy-2023"`` is that of the releases
0.0.30 to 0.8.1, where keys are text, ``"iggy"`` the one since 0.8.2, where keys have kinds too.

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

from letterhead.iggy.faults import iggy_code
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
