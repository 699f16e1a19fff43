"""``python -m belfry.cli`` is ``belfry``."""

from __future__ import annotations

import sys

from belfry.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
