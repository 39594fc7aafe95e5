"""Parse Java property files, and resolve references to secrets: :func:`read_properties`, :func:`expand`.

A value may refer to a secret that is stored elsewhere, in the notation of Kafka's ``ConfigProvider``:

``${env:NAME}``
    An environment variable.
``${file:PATH}``
    The text of a file, without the end of its last line.
``${file:PATH:KEY}``
    A value of a property file.

Error messages contain names and paths, but no values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from letterhead._invariants import require

__all__ = ["expand", "read_client_config", "read_properties"]

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Beginning of a reference. A separate search finds the closing brackets, which is fast even if many are missing.
_REFERENCE = re.compile(r"\$\{(env|file):")
# A key ends at the first separator without a backslash before it. Blanks after it may be followed by "=" or ":".
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f]++)*+)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Return the entries of a property file, parsed like ``java.util.Properties.load``.

    The file is ISO 8859-1, with other characters escaped, as in ``\u20ac``. If a key is repeated, its last value
    applies.

    Raises
    ------
    ValueError
        If the file cannot be read, or ``\u`` is not followed by four hexadecimal digits.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "client.properties")
    ...     _ = path.write_text("# brokers\nbootstrap.servers = a:9092,\\\n  b:9092\nclient.id: orders\n")
    ...     read_properties(path)
    {'bootstrap.servers': 'a:9092,b:9092', 'client.id': 'orders'}
    """
    try:
        text = Path(path).read_bytes().decode("iso-8859-1")
    except (OSError, ValueError) as error:  # ValueError: the file name contains a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"the settings cannot be read from {os.fspath(path)}: {reason}") from None
    properties = {}
    for number, line in _logical_lines(text):
        match = require(_ENTRY.fullmatch(line), "a match of every line")
        try:
            key, value = map(_unescape, match.groups())
        except ValueError:
            raise ValueError(
                rf"{os.fspath(path)}, line {number}: \u is not followed by four hexadecimal digits"
            ) from None
        properties[key] = value
    return properties


def read_client_config(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the settings in a configuration file of kcat: one ``name=value`` per line, without escapes.

    Raises
    ------
    ValueError
        If the file cannot be read, or a line has no ``=``.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"the settings cannot be read from {os.fspath(path)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the settings cannot be read from {os.fspath(path)}: it is not UTF-8") from None
    settings = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals:
            raise ValueError(f"{os.fspath(path)}, line {number}: there is no = after the name of a setting")
        settings[name.strip()] = value.strip()
    return settings


def expand(name: str, value: str) -> str:
    """Return the value of a setting with its references replaced; raise ValueError if one cannot be resolved."""

    def resolved(provider: str, reference: str) -> str:
        if provider == "env":
            if reference not in os.environ:
                raise ValueError(f"{name}: the environment variable {reference} is not set")
            return os.environ[reference]
        path, _, key = reference.rpartition(":")
        if path and not _exists(reference):
            properties = read_properties(path)
            if key not in properties:
                raise ValueError(f"{name}: {path} has no property {key}")
            return properties[key]
        try:
            return re.sub(r"\r?\n\Z", "", Path(reference).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8, or has no valid name"
            raise ValueError(f"{name}: {reference} cannot be read: {reason}") from None

    parts, position, end = [], 0, -1
    for match in _REFERENCE.finditer(value):
        if match.start() < position:
            continue  # the match lies inside the previous reference
        if end < match.end():
            end = value.find("}", match.end())
        if end < 0:
            break
        parts += [value[position : match.start()], resolved(match[1], value[match.end() : end])]
        position = end + 1
    return "".join([*parts, value[position:]])


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a file name that is too long
        return False


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments and blank lines, joined where a line ends with an odd number of backslashes."""
    lines = enumerate(re.split(r"\r\n|\r|\n", text), 1)
    for number, natural in lines:
        piece = natural.lstrip(_BLANK)
        if not piece or piece[0] in "#!":
            continue
        pieces: list[str] = []
        is_blank = True
        # If the number of backslashes is odd, the last one continues the line, and the others are escaped pairs.
        while (len(piece) - len(piece.rstrip("\\"))) % 2:
            pieces.append(piece[:-1])
            is_blank = is_blank and not pieces[-1]
            number, following = next(lines, (number, None))
            if following is None:
                piece = ""
                break
            piece = following.lstrip(_BLANK)
            if is_blank and piece[:1] in ("#", "!"):  # nothing precedes it, so it is a comment
                piece = ""
                break
        line = "".join([*pieces, piece])
        if line:
            yield number, line


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] != "u":
            return _ESCAPES.get(escape, escape)
        if len(escape) != 5:
            raise ValueError
        return chr(int(escape[1:], 16))

    plain = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text, flags=re.DOTALL)
    # Characters outside the Basic Multilingual Plane are written as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
