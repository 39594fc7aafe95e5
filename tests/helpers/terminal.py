"""What a program prints on a pseudo-terminal."""

from __future__ import annotations

import os


def read_to_end(leader: int) -> bytes:
    """Read until the last program on the other side is gone, and close this side."""
    printed = b""
    while True:
        try:
            some = os.read(leader, 65536)
        except OSError:
            # Linux reports the end of a pseudo-terminal this way.
            break
        if not some:
            break
        printed += some
    os.close(leader)
    return printed
