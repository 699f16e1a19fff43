"""`make site-version`: the site of this release beside those of earlier ones, for any web server.

    dist/versions/0.1.0/…         this release; the folders of earlier ones stay
    dist/versions/versions.json   what the selector at the head of each page offers, newest first
    dist/versions/index.html      leads to the newest

The layout is that of mike, which the theme knows; mike itself keeps sites in a branch of Git.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

RELEASE: Final = re.compile(r"\d+(\.\d+)*")
LEAD: Final = (
    '<!doctype html><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'
)


def add(site: Path, versions: Path, release: str) -> list[str]:
    """Copy a site in as a release, in place of one of that name; returns all, newest first."""
    if not RELEASE.fullmatch(release):
        raise ValueError(f"{release!r} is no release: give numbers with dots, such as 0.1.0.")
    target = versions / release
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    there = [each.name for each in versions.iterdir() if RELEASE.fullmatch(each.name)]
    there.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    listed = [{"version": each, "title": each, "aliases": []} for each in there]
    (versions / "versions.json").write_text(json.dumps(listed, indent=1) + "\n")
    (versions / "index.html").write_text(LEAD.format(there[0]))
    return there


if __name__ == "__main__":
    print("dist/versions:", *add(Path("dist/site"), Path("dist/versions"), sys.argv[1]))
