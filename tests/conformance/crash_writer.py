"""Writes numbered batches into a store without end, until somebody kills it.

Batch n puts ``n`` under ``last``, under its own number, and under ``twin-`` and its own number;
every hundredth begins a flush.  What a crash leaves has to be the batches 1 to some n, all of them.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from belfry.host.rocks import RocksMap


def main(path: Path) -> None:
    """Write until killed; says after which batch it began to flush."""
    rows = RocksMap(path)
    for number in count(1):
        name = b"%08d" % number
        rows.write({b"last": name, name: b"x" * 300, b"twin-" + name: b"y" * 300})
        if number % 100 == 0:
            rows.flush()
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
