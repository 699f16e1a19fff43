"""The web page: one file each of HTML, CSS and JavaScript, served by `belfry.api`.

It loads nothing from elsewhere, keeps nothing, and asks `/v1/cluster` every two seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ASSETS: Final = Path(__file__).parent / "assets"
PAGE: Final = ASSETS / "index.html"
