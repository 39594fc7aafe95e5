"""Keep the instructions and the ratios of each release in `benches/record/history.json`, oldest first.

    python -m benches.history    write those on record under the version of Cargo.toml

A version that is there already is written again. The plots and tables of the documentation are drawn from this file.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from benches import instructions

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "benches" / "record" / "history.json"


def releases() -> list[dict[str, Any]]:
    """Return what was kept of each release."""
    return json.loads(HISTORY.read_text()) if HISTORY.exists() else []


def main() -> None:
    """Write the entry of this version."""
    # The pages import this module.
    from benches.limits import page

    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    record = json.loads(instructions.RECORD.read_text())
    ratios = {f"{line.job}; {line.side}; {line.condition}": float(f"{line.ratio:.3g}") for line in page.compared()}
    entry = {
        "version": version, "compiler": record["compiler"], "instructions": record["per header"], "ratios": ratios
    }  # fmt: skip
    kept = [release for release in releases() if release["version"] != version]
    HISTORY.write_text(json.dumps([*kept, entry], indent=2) + "\n")


if __name__ == "__main__":
    main()
