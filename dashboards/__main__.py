"""``python -m dashboards`` writes the dashboards into this folder, or those given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dashboards.operators import operators
from dashboards.tenants import tenants

MADE: Final[dict[str, Callable[[], str]]] = {
    "belfry.json": operators,
    "tenants.json": tenants,
}

if __name__ == "__main__":
    for folder in sys.argv[1:] or [str(Path(__file__).parent)]:
        for name, make in MADE.items():
            (Path(folder) / name).write_text(make(), "utf-8")
