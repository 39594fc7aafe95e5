"""Write THIRD-PARTY.txt: the licences of the crates whose code is in a wheel, with their texts, each once.

`--check` says instead whether the file names just the crates that Cargo.lock brings into a wheel. A crate comes with its
texts in the archive of the registry, where cargo has put it. What only runs while a crate is built is in no wheel.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "THIRD-PARTY.txt"

TRIPLES = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
"""What wheels are built for, as in deny.toml."""

TEXTS = re.compile(r"(?i)(licen[cs]e|copying|copyright|notice)([-_.].*)?")
NOTICES = re.compile(r"(?i)notice([-_.].*)?")

BUNDLED = {"zstd-sys": ("zstd/LICENSE",), "libmimalloc-sys": ("c_src/mimalloc/v3/LICENSE",)}
"""C sources in the archives of crates, under licences of their own."""

HEADER = """\
The compiled module of letterhead has code of the Rust standard library (MIT OR Apache-2.0) and of the crates below. Of those
that leave the choice the Apache License 2.0 is taken, which is in LICENSE beside this file; the texts of the others, and
notices, follow, each with the crates that come with it. `tools/supply third-party` writes this file.
"""


RULE = "=" * 100


class Crate(NamedTuple):
    """A crate whose code is in a wheel."""

    name: str
    version: str
    licence: str
    directory: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def crates() -> list[Crate]:
    """Find the crates of the wheels: normal dependencies of the module, without macros, which run when it is built."""
    targets = [option for triple in TRIPLES for option in ("--target", triple)]
    tree = cargo(
        "tree", "--features", "python,mimalloc", "--edges", "normal,no-proc-macro", "--prefix", "none", *targets
    )
    named = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages: list[dict[str, Any]] = json.loads(
        cargo("metadata", "--format-version", "1", "--features", "python,mimalloc")
    )["packages"]
    licensed = [
        Crate(package["name"], package["version"], package["license"], Path(package["manifest_path"]).parent)
        for package in packages
        if (package["name"], f"v{package['version']}") in named and package["source"] is not None
    ]
    return sorted(licensed)


def cargo(*arguments: str) -> str:
    """Run cargo in the project, which it may not change."""
    return subprocess.run(
        ["cargo", *arguments, "--locked"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=300
    ).stdout


def texts(crate: Crate) -> list[str]:
    """Read what has to be passed on with a crate: of one under the Apache License its notice, of others their licences."""
    required_name = NOTICES if "Apache-2.0" in re.split(" OR |/", crate.licence) else TEXTS
    own = [path for path in sorted(crate.directory.iterdir()) if path.is_file() and required_name.fullmatch(path.name)]
    bundled = [path for pattern in BUNDLED.get(crate.name, ()) for path in sorted(crate.directory.glob(pattern))]
    if required_name is TEXTS and not own:
        raise SystemExit(f"{crate} comes without its licence, {crate.licence}")
    if crate.name in BUNDLED and not bundled:
        raise SystemExit(f"{crate} has its C sources in another place")
    return [path.read_text(encoding="utf-8").strip() for path in own + bundled]


def document(listed: list[Crate]) -> str:
    """Make the file: a table of the crates, then every text with those it is for."""
    users: dict[str, list[str]] = {}
    for crate in listed:
        for text in texts(crate):
            users.setdefault(text, []).append(str(crate))
    table = "\n".join(f"{crate!s:<32} {crate.licence}" for crate in listed)
    sections = [f"{RULE}\n{', '.join(names)}\n{RULE}\n\n{text}" for text, names in users.items()]
    return "\n\n".join([HEADER, table, *sections]) + "\n"


def named(text: str) -> list[str]:
    """Return the crates in the table of the file."""
    return re.findall(r"^(\S+ \d\S*) +\S.*$", text.split(RULE)[0], re.MULTILINE)


def main() -> int:
    """Write the file, or say what is wrong with it."""
    listed = crates()
    if "--check" not in sys.argv:
        TARGET.write_text(document(listed), encoding="utf-8")
        print(f"{TARGET.name}: {len(listed)} crates")
        return 0
    there, needed = set(named(TARGET.read_text(encoding="utf-8"))), {str(crate) for crate in listed}
    for crate in sorted(needed - there):
        print(f"{TARGET.name} lacks {crate}: tools/supply third-party", file=sys.stderr)
    for crate in sorted(there - needed):
        print(f"{TARGET.name} has {crate}, which no wheel has: tools/supply third-party", file=sys.stderr)
    return int(there != needed)


if __name__ == "__main__":
    sys.exit(main())
