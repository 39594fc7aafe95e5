"""One message as it was decoded: its headers and the fields its format has beside them."""

from __future__ import annotations

from typing import Any

from letterhead.errors import unknown_name
from letterhead.headers import Headers

__all__ = ["Envelope"]


class Envelope:
    """The fields of one message, by name.

    Which fields there are is the format's business: ``streams`` has ``headers`` and ``payload``,
    ``streams-timestamped`` has ``timestamp`` between them. A field that is not given is null when it is written.

    Parameters
    ----------
    **fields : object
        The fields. ``headers`` takes what :class:`~letterhead.headers.Headers` takes.

    Attributes
    ----------
    _fields : tuple of str
        Names of the fields, in order.

    Examples
    --------
    >>> import letterhead as lh
    >>> e = lh.Envelope(headers={"tenant": b"acme"}, timestamp=1767225600000, payload=b"42")
    >>> e
    Envelope(headers=Headers([('tenant', b'acme')]), timestamp=1767225600000, payload=b'42')
    >>> e.headers["tenant"], e._fields
    (b'acme', ('headers', 'timestamp', 'payload'))
    >>> e._replace(payload=b"43") == e
    False
    """

    def __init__(self, **fields: Any) -> None:
        headers = fields.get("headers")
        if headers is not None and not isinstance(headers, Headers):
            fields["headers"] = Headers(headers)
        self.__dict__.update(fields)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self.__dict__)

    def _asdict(self) -> dict[str, Any]:
        """Give the fields as a new dict."""
        return dict(self.__dict__)

    def _replace(self, **fields: Any) -> Envelope:
        """Give a copy with other values for some fields."""
        for name in fields:
            if name not in self.__dict__:
                raise unknown_name("field", name, self.__dict__)
        return Envelope(**{**self.__dict__, **fields})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            self.__getattr__(name)
        if name == "headers" and value is not None and not isinstance(value, Headers):
            value = Headers(value)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is not there: a field misspelt would otherwise be set, and never written. To a type checker
        # this is how fields are read, which depend on the format.
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(str(unknown_name("field", name, self.__dict__)))

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if isinstance(other, Envelope) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Envelope({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._asdict(),)


def _rebuild(fields: dict[str, Any]) -> Envelope:
    return Envelope(**fields)
