"""Parse the login module of ``sasl.jaas.config`` as Kafka's Java clients do: :func:`parse_jaas`.

Java splits the text into the tokens of ``java.io.StreamTokenizer``: words of letters, digits and ``.-_$``, text in
double or single quotes with C escapes, numbers, comments, and single characters. A value is a word or quoted text: a
number needs quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["parse_jaas"]

_FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# Numbers begin with a digit, a dot or a hyphen, words with any other word character. A lone hyphen is a single
# character. A slash that does not begin a block comment starts a line comment, whose first character may be the line
# end.
_TOKEN = re.compile(
    r"""
      (?P<blank>  [\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /.?[^\r\n]*)
    | (?P<number> (?=[0-9.]|-[0-9.]) -?[0-9]*\.?[0-9]*)
    | (?P<word>   [A-Za-z_$\xa0-\U0010ffff][-A-Za-z_$0-9.\xa0-\U0010ffff]*)
    | (?P<quoted> "(?:\\.|[^\\"\r\n]++)*+(?:"|(?=[\r\n])|\\?\Z) | '(?:\\.|[^\\'\r\n]++)*+(?:'|(?=[\r\n])|\\?\Z))
    | (?P<other>  .)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)


class _Token(NamedTuple):
    text: str | None  # content of a word or of quoted text
    character: str  # any other token, or "" for a number

    def __repr__(self) -> str:
        return "<token>"


def parse_jaas(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the class of the login module and its options, or None if Java rejects the text.

    Examples
    --------
    >>> parse_jaas('org.example.PlainLoginModule required username="alice" password="a \\\\"b\\\\"";')
    ('org.example.PlainLoginModule', {'username': 'alice', 'password': 'a "b"'})
    """
    tokens = _tokens(text)
    module, flag = next(tokens, None), next(tokens, None)
    if module is None or not module.text or flag is None or (flag.text or "").upper() not in _FLAGS:
        return None
    options: dict[str, str] = {}
    for key in tokens:
        if key.character == ";":
            # Kafka's clients accept only one login module.
            return (module.text, options) if next(tokens, None) is None else None
        equals, value = next(tokens, None), next(tokens, None)
        if key.text is None or equals is None or equals.character != "=" or value is None or value.text is None:
            return None
        options[key.text] = value.text
    return None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match["word"] is not None:
            yield _Token(match["word"], "")
        elif match["quoted"] is not None:
            quote = match["quoted"][0]
            inner = match["quoted"][1:]
            yield _Token(_ESCAPE.sub(_unescape, inner.removesuffix(quote) if _is_closed(inner, quote) else inner), "")
        elif match["blank"] is None:
            yield _Token(None, match["other"] or "")


def _is_closed(inner: str, quote: str) -> bool:
    """Return whether quoted text ends with a closing quote rather than an escaped one."""
    return inner.endswith(quote) and (len(inner) - len(inner[:-1].rstrip("\\")) - 1) % 2 == 0


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPES.get(escape, escape)
