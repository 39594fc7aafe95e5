"""Track why brokers are unreachable, and when further attempts are pointless: :class:`Reachability`."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["Reachability"]

_TRIES = 5
"""Attempts per broker while none has answered, and host names are unknown or ports are closed."""

_UNKNOWN_SECONDS = 15.0
"""Time for which an advertised broker may be missing in DNS. A cluster needs up to 9 s to replace a broker."""


@dataclass
class _Failure:
    """Reason why a broker that has never accepted a connection cannot be reached."""

    reason: str
    since: float
    tries: int = 0
    is_unknown: bool = False  # whether DNS has no address for it


class Reachability:
    """Tracks which brokers respond, and raises ConnectionError when more attempts are unlikely to help.

    Brokers are named by their endpoints, ``host:port``.

    Parameters
    ----------
    servers : str
        The bootstrap servers, which errors name.
    remedy : str
        Advice if a broker closes every connection at its first request.
    """

    def __init__(self, servers: str, remedy: str) -> None:
        self._servers = servers
        self._remedy = remedy
        self._failures: dict[str, _Failure] = {}
        self._connected: set[str] = set()  # brokers that have accepted a connection
        self._responded: set[str] = set()  # brokers that have answered a request
        self._dropped: dict[str, int] = {}  # closed connections of brokers that have not responded

    def note_connected(self, endpoint: str) -> None:
        """Note that a broker has accepted a connection."""
        self._connected.add(endpoint)
        self._failures.pop(endpoint, None)

    def note_response(self, endpoint: str) -> None:
        """Note that a broker has answered a request."""
        self._responded.add(endpoint)

    def note_failure(self, endpoint: str, reason: str, *, is_unknown: bool = False) -> None:
        """Note why a connection to a broker cannot be opened."""
        if endpoint not in self._connected:
            failure = self._failures.setdefault(endpoint, _Failure(reason, time.monotonic()))
            failure.reason, failure.is_unknown = reason, is_unknown
            failure.tries += 1

    def note_dropped(self, endpoint: str) -> None:
        """Note a closed connection; raise ConnectionError if the broker always closes it before it responds."""
        if endpoint in self._responded:
            return
        self._dropped[endpoint] = self._dropped.get(endpoint, 0) + 1
        if self._dropped[endpoint] >= _TRIES:
            raise ConnectionError(f"{endpoint} ends connections at the first request{self._remedy}")

    def check(self, bootstrap: Collection[str]) -> None:
        """Raise ConnectionError if no bootstrap server can be reached, or an advertised broker has no address."""
        failures = self._failures.items()
        if not self._connected and all(
            endpoint in self._failures and self._failures[endpoint].tries >= _TRIES for endpoint in bootstrap
        ):
            reasons = "; ".join(f"{endpoint}: {failure.reason}" for endpoint, failure in failures)
            raise ConnectionError(
                f"no broker can be reached ({reasons}) after {_TRIES} tries: check bootstrap.servers, and whether the "
                "brokers run"
            )
        for endpoint, failure in failures:
            if self._connected and failure.is_unknown and time.monotonic() - failure.since >= _UNKNOWN_SECONDS:
                raise ConnectionError(
                    f"{endpoint} cannot be reached: {failure.reason}; {self._servers} names this broker: check its "
                    "advertised.listeners"
                )
