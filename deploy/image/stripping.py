"""Debug information of compiled modules, which is more than half of them, stays outside the image.

Wheels carry it for who debugs a C extension; no traceback of Python shows it.  The list of a
distribution's files (``RECORD``) gets the digests of what is in the image, so that it can still be
checked against that list.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import subprocess
from pathlib import Path


def strip(packages: Path) -> None:
    """Strip what is compiled below a ``site-packages`` folder, and say so in each ``RECORD``."""
    compiled = sorted(path for path in packages.rglob("*.so*") if path.is_file())
    subprocess.run(["strip", "--strip-debug", *compiled], check=True)
    for record in packages.glob("*.dist-info/RECORD"):
        rows = list(csv.reader(record.read_text("utf-8").splitlines()))
        told = [_told(packages, *row) for row in rows]
        with record.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(told)


def _told(packages: Path, name: str, digest: str, size: str) -> tuple[str, str, str]:
    path = packages / name
    if ".so" not in path.name or not digest:
        return name, digest, size
    content = path.read_bytes()
    hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return name, f"sha256={hashed}", str(len(content))
