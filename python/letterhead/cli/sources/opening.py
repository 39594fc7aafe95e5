"""Open the sources named by arguments (:func:`open_sources`): prompt for missing passwords, and print remarks."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

from letterhead._row_request import RowRequest
from letterhead.cli.exits import BAD_DATA, OK, Failure, as_options
from letterhead.cli.render import warn
from letterhead.cli.settings_files import file_settings
from letterhead.cli.sources.errors import reading_errors
from letterhead.errors import TruncatedTailWarning
from letterhead.sources import recognition
from letterhead.sources.base import BROKERS_REMEDY, Logins, Source, check_options
from letterhead.sources.iggy import IggyTopicSource
from letterhead.sources.kafka import SCHEME

if TYPE_CHECKING:
    from letterhead.reader import Reader

__all__ = [
    "ask",
    "can_ask",
    "check_request",
    "column_names",
    "open_reader",
    "open_rows",
    "open_sources",
    "print_remarks",
    "report_findings",
    "warn_of_password",
]

CONFIG_VARIABLE, KCAT_VARIABLE = "LETTERHEAD_CONFIG", "KCAT_CONFIG"
"""Environment variables that name a property file, or a kcat configuration file. --config and -X take precedence."""


def open_sources(names: Sequence[str], request: RowRequest) -> list[Source]:
    """Return the sources named by arguments; with --bootstrap-server, names without a scheme are topics."""
    if request.servers is not None:
        names = [_topic_address(name) for name in names]
    # A truncated end is reported as a finding of the source, on one line.
    warnings.simplefilter("ignore", TruncatedTailWarning)
    with reading_errors():
        sources = recognition.open_sources(names, AskedLogins())
    for source in sources:
        source.reports_findings = True
        # Messages show the name of a source, which should contain the brokers of --bootstrap-server.
        if request.servers is not None and source.name.startswith(f"{SCHEME}/"):
            source.name = f"{SCHEME}{request.servers}{source.name.removeprefix(SCHEME)}"
    if any(isinstance(source, IggyTopicSource) and source.has_password for source in sources):
        warn_of_password()
    return sources


def warn_of_password() -> None:
    """Warn of a password in the address of an Iggy topic."""
    warn(
        "a password in an argument is visible to other users: leave it out, and set IGGY_USERNAME and "
        "IGGY_PASSWORD, or be asked for it"
    )


def _topic_address(name: str) -> str:
    """Return the address of a topic for --bootstrap-server; an address must not name other brokers."""
    if "://" not in name:
        return f"{SCHEME}/{quote(name, safe='')}"
    if not f"{name}/".lower().startswith(f"{SCHEME}/"):
        raise Failure("--bootstrap-server is for a topic without an address: leave it out, or name the topic alone")
    return name


def check_request(sources: Sequence[Source], request: RowRequest) -> None:
    """Reject options that a source does not support."""
    with reading_errors():
        check_options(sources, request)


def open_reader(source: Source, request: RowRequest) -> Reader:
    """Return a stream of the requested rows, and print the source's remarks."""
    with print_remarks():
        return source.reader(request)


def open_rows(source: Source, request: RowRequest) -> Reader:
    """Return a stream like :func:`open_reader`, for a caller that reports unseen names of headers itself."""
    with print_remarks():
        return source.read_rows(request)


def column_names(source: Source, request: RowRequest) -> list[str]:
    """Return the names of all columns, and print the source's remarks."""
    with print_remarks():
        return [*source.columns(request)]


def report_findings(source: Source) -> int:
    """Print the findings about a source, and return the exit code."""
    findings = source.findings()
    for remark in (*findings.remarks, *map(as_options, source.unseen_names)):
        warn(remark)
    source.unseen_names.clear()  # findings about a copy are reported twice: before and after verification
    return BAD_DATA if findings.has_errors else OK


@contextmanager
def print_remarks() -> Iterator[None]:
    """Print the remarks that opening a source emits as warnings."""
    with reading_errors(), warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", UserWarning)
        yield
    for remark in remarks:
        warn(as_options(str(remark.message)))


class AskedLogins(Logins):
    """Prompts for missing users and passwords on a terminal."""

    def __init__(self, brokers_remedy: str = BROKERS_REMEDY) -> None:
        super().__init__()
        self.brokers_remedy = brokers_remedy

    def kafka_settings(self, settings: Mapping[str, Any], *, has_servers: bool) -> dict[str, Any]:
        """Add the settings of the file named in the environment, and prompt for a missing password."""
        file, of_kcat = os.environ.get(CONFIG_VARIABLE), os.environ.get(KCAT_VARIABLE)
        from_file = file_settings(file or of_kcat or "", is_of_kcat=not file) if file or of_kcat else {}
        values = super().kafka_settings({**from_file, **settings}, has_servers=has_servers)
        is_login = "sasl.username" in values and "sasl.jaas.config" not in values
        if is_login and "sasl.password" not in values and can_ask():
            values["sasl.password"] = ask(f"password of {values['sasl.username']}", secret=True)
        return values

    def complete(self, user: str | None, password: str | None) -> tuple[str, str]:
        """Prompt for the user and the password of Iggy."""
        if can_ask():
            user = user or ask("user of Iggy")
            password = password or ask("password", secret=True)
        return super().complete(user, password)


def can_ask() -> bool:
    """Return whether a terminal is available for prompts."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, secret: bool = False) -> str:
    """Prompt on standard error; a secret is not echoed."""
    answer: str = typer.prompt(question, hide_input=secret, err=True)
    return answer
