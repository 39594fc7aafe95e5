"""`letterhead formats`: all formats."""

from __future__ import annotations

import re
from typing import Any

from rich.text import Text

from letterhead._formats import format_table
from letterhead.cli.exits import OK
from letterhead.cli.options import Json
from letterhead.cli.render import print_json
from letterhead.cli.screen import console, table

_SYSTEMS = {"kip82": "KIP-82 draft", "iggy": "Iggy", "streams": "Kafka Streams"}


def formats_command(json: Json = False) -> int:
    """List all formats: name, class, system, description.

    A format of class headers is a list of headers, message also has the other
    fields of one message, and batch holds many messages.

    \b
    Examples:
      letterhead formats
      letterhead formats --json
    """
    rows: list[dict[str, Any]] = [
        {
            "name": row.name,
            "class": row.is_,
            "system": _SYSTEMS.get(row.name.partition("-")[0], "Kafka"),
            "description": re.sub("^(KIP-82 draft|KIP-82 alternative|Apache Iggy),? ", "", row.source),
            "layout": row.layout,
            "fields": dict(row.fields),
            "writable": row.is_target,
        }
        for row in format_table().values()
    ]
    if json:
        print_json(rows)
        return OK
    view = table("name", "class", "system", "description", fold=True)
    view.columns[0].no_wrap = view.columns[2].no_wrap = True
    for row in rows:
        view.add_row(Text(row["name"], style="bold"), *(row[name] for name in ("class", "system", "description")))
    console().print(view)
    return OK
