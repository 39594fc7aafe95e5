"""Read the login of ``sasl.jaas.config``: :func:`parse_jaas`."""

from __future__ import annotations

import re

__all__ = ["parse_jaas"]

_OPTION = r'[\w.]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";]+)'
_CONFIG = re.compile(rf"\s*(\S+)\s+\w+((?:\s+{_OPTION})*)\s*;\s*")


def parse_jaas(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the class of the login module and its options, or None if the text has another form.

    Examples
    --------
    >>> parse_jaas('org.example.PlainLoginModule required username="alice" password="a \\\\"b\\\\"";')
    ('org.example.PlainLoginModule', {'username': 'alice', 'password': 'a "b"'})
    """
    match = _CONFIG.fullmatch(text)
    if match is None:
        return None
    module, options = match.groups()
    return module, {
        name: re.sub(r"\\(.)", r"\1", quoted[1:-1]) if quoted else plain
        for name, quoted, plain in re.findall(r'([\w.]+)\s*=\s*(?:("(?:[^"\\]|\\.)*")|([^\s";]+))', options)
    }
