r"""Translate regular expressions of Rust's crate ``regex`` to Java: :func:`java_pattern`.

Rust and Java agree on few constructs: Java's ``.`` excludes more line ends, its ``\d`` is ASCII only, and ignoring case
has other rules. The supported constructs match the same text, and use no Java stack for each character.
"""

from __future__ import annotations

import re

__all__ = ["java_pattern"]

_FLAGS = re.compile(r"(?:\(\?[is]+\))*")

_CLASS = r"\[\^?-?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ .,:;/@#%=+*!?$])+-?\]"
"""Character classes of ASCII characters and ranges, without class operators."""

_ATOM = re.compile(
    rf"""
    (?P<class>{_CLASS}) | (?P<any>\.) | \\(?P<escaped>[^A-Za-z0-9<>\s] | [ ]) | (?P<plain>[^\\.\[\](){{}}|*+?^$])
    """,
    re.VERBOSE | re.DOTALL,
)

_REPEAT = re.compile(r"(?:[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\})?(?![*+?{])")

_FOLDED = {"k": "\u212a", "s": "\u017f"}
"""Non-ASCII characters that equal an ASCII letter if case is ignored."""


def java_pattern(pattern: str) -> str | None:
    r"""Return the Java pattern that matches the same text; None if none is known.

    Examples
    --------
    >>> java_pattern("^eu-[a-z]*.$")
    '^eu\\x{2d}[a-z]*[^\\n]\\z'
    >>> print(java_pattern(r"\d+"))
    None
    """
    prefix = _FLAGS.match(pattern)
    flags = prefix[0] if prefix else ""
    branches = _branches(pattern[len(flags) :], "i" in flags, "s" in flags)
    return None if branches is None else "|".join(branches)


def _branches(text: str, ignores_case: bool, any_is_all: bool) -> list[str] | None:
    """Return the alternatives of a pattern without groups."""
    branches, parts = [], list[str]()
    index, begins = 0, True
    while index < len(text):
        if text[index] == "|":
            branches.append("".join(parts))
            parts, index, begins = [], index + 1, True
            continue
        if text[index] == "^" and begins:
            parts.append("^")
            index, begins = index + 1, False
            continue
        if text[index] == "$" and text[index + 1 : index + 2] in ("", "|"):
            parts.append(r"\z")
            index += 1
            continue
        atom = _ATOM.match(text, index)
        repeat = _REPEAT.match(text, atom.end()) if atom else None
        part = _translate(atom, ignores_case, any_is_all) if atom and repeat else None
        if repeat is None or part is None:
            return None
        parts.append(part + repeat[0])
        index, begins = repeat.end(), False
    return [*branches, "".join(parts)]


def _translate(atom: re.Match[str], ignores_case: bool, any_is_all: bool) -> str | None:
    if atom["any"]:
        return r"[\s\S]" if any_is_all else r"[^\n]"
    if atom["class"]:
        return _class(atom["class"], ignores_case)
    character: str = atom["escaped"] or atom["plain"]
    if ignores_case and character.isascii() and character.isalpha():
        return f"[{character.lower()}{character.upper()}{_FOLDED.get(character.lower(), '')}]"
    if ignores_case and not character.isascii():
        return None
    return character if character.isalnum() else rf"\x{{{ord(character):x}}}"


def _class(text: str, ignores_case: bool) -> str | None:
    """Return a character class, with letters of the other case added if case is ignored."""
    start = "[^" if text.startswith("[^") else "["
    body = text[len(start) : -1]
    members: list[str] = []
    for first, last, single in re.findall(r"([A-Za-z0-9])-([A-Za-z0-9])|(.)", body, re.DOTALL):
        if single:
            first = last = single
        # A reversed range makes the pattern invalid. A range such as A-z also includes the characters between Z and a.
        members.extend(map(chr, range(ord(first), ord(last) + 1)))
    if ignores_case:
        letters = {letter.lower() for letter in members if letter.isalpha()}
        members += [*letters, *map(str.upper, letters), *(_FOLDED[letter] for letter in letters & _FOLDED.keys())]
    return start + "".join(_member(member) for member in sorted(set(members))) + "]"


def _member(character: str) -> str:
    return character if character.isalnum() else rf"\x{{{ord(character):x}}}"
