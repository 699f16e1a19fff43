"""``python -m belfry.cli`` is ``belfry``.

It is the way in where the script `belfry` is not on the PATH: in a container, in a virtual
environment that is not active, or in a test that starts a worker as a process of its own.
"""

from __future__ import annotations

import sys

from belfry.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
