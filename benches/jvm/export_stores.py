"""Write the rows of a store for the Java benchmark and print its arguments.

The file is what `DataInputStream` reads: an int32 count, then of each row the int32 length and the bytes of the key, and
the same of what a store holds.

    python -m benches.jvm.export_stores FILE  ->  "FILE rows"
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from benches import stores


def main(file: Path) -> None:
    """Write the file, print the command line's part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    messages = stores.messages(stores.FIVE)
    with file.open("wb") as out:
        out.write(struct.pack(">i", len(messages)))
        for row in messages.items():
            for part in row:
                out.write(struct.pack(">i", len(part)) + part)
    print(file, len(messages))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
