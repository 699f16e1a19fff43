"""`make platforms`: where the locked packages of worker and client can be installed.

For each Python that is named in `pyproject.toml` and each platform, pip resolves the lock by wheels
alone, as if it were there, and downloads nothing but what describes them.  Packages that have to be
built there, for want of a wheel, are named below with what building them takes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = ("locks/product.lock", "locks/client.lock")
GLIBC: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
PLATFORMS: Final = {
    "Linux x86_64": [f"{each}_x86_64" for each in GLIBC],
    "Linux aarch64": [f"{each}_aarch64" for each in GLIBC],
    "macOS arm64": [
        *(f"macosx_{version}_0_arm64" for version in (14, 13, 12, 11)),
        *(f"macosx_{version}_universal2" for version in ("11_0", "10_13", "10_9")),
    ],
}
# Has a source distribution there, which asks for a compiler of C.
BUILT: Final = {"Linux aarch64": {"faust-streaming"}}


def main() -> None:
    """Tell of each; ends with 1 where something has no wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = " ".join(project["classifiers"])
    missing = []
    for python in re.findall(r"Python :: (3\.\d+)", named):
        for platform in PLATFORMS:
            for lock in LOCKS:
                told = _missing(python, platform, lock)
                print(f"{python} {platform} {lock}: {told or 'all have wheels'}", flush=True)
                missing += [told] if told else []
    sys.exit(1 if missing else 0)


def _missing(python: str, platform: str, lock: str) -> str:
    built = BUILT.get(platform, set())
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text("utf-8"))
    kept = "\n".join(each for each in entries if each.partition("==")[0] not in built)
    tags = [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory(prefix="belfry-platform-") as folder:
        given = Path(folder, "lock")
        given.write_text(kept, "utf-8")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
        how = ["--disable-pip-version-check", "--ignore-installed", "--only-binary=:all:"]
        where = ["--python-version", python, "--implementation", "cp", *tags, "--target", folder]
        told = subprocess.run(
            [*command, *how, *where, "-r", given], capture_output=True, text=True, check=False
        )
    return told.stderr.strip().rpartition("\n")[2] if told.returncode else ""


if __name__ == "__main__":
    main()
