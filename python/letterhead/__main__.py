"""Run the command: ``python -m letterhead``."""

from __future__ import annotations

import sys

from letterhead.cli import main

if __name__ == "__main__":
    sys.exit(main())
