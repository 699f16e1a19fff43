"""The part of the image that is Debian's: a Python and the libraries that it needs, and no more.

mmdebstrap fetches and unpacks packages, apt resolves and verifies them.  Nothing is configured: no
script of a package runs, so there is no shell, no package manager and nothing that differs between
two builds of the same packages.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SUITE: Final = "bookworm"
PYTHON: Final = "python3.11"
# libstdc++ is RocksDB's; base-files says which system this is, to tools that scan the image.  Time
# zones come from the lock (`tzdata` of PyPI), so there is one version of them.
PACKAGES: Final = (PYTHON, "libstdc++6", "base-files")
# Only its files are taken: it depends on a Perl that would write the bundle, as is done here.
AUTHORITIES: Final = "ca-certificates"
MERGED: Final = (
    'for each in bin sbin lib lib64; do mkdir -p "$1/usr/$each"; ln -s usr/$each "$1/$each"; done'
)
# Of the build alone, or for people who look around on a system.
LEFT_OUT: Final = (
    *("dev", "proc", "sys", "run", "boot", "home", "media", "mnt", "opt", "srv"),
    *("etc/apt", "etc/dpkg", "var/lib/apt", "var/lib/dpkg", "var/cache", "var/log", "var/backups"),
    *("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug"),
    *("usr/share/menu", "usr/share/applications", "usr/share/pixmaps", "usr/share/base-files"),
    *("usr/share/python3", "usr/share/binfmts"),
)
MOUNT_POINTS: Final = ("dev", "proc", "sys", "run", "tmp", "opt")
BUNDLE: Final = Path("etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class Package:
    """A package of Debian in the image; ``control`` is what it says of itself."""

    name: str
    version: str
    architecture: str
    control: str

    def component(self) -> dict[str, Any]:
        """The package in a CycloneDX list."""
        purl = f"pkg:deb/debian/{self.name}@{self.version}?arch={self.architecture}&distro={SUITE}"
        return {
            "bom-ref": purl,
            "type": "library",
            "name": self.name,
            "version": self.version,
            "purl": purl.replace("+", "%2B"),
        }


def unpacked(root: Path, debs: Path) -> list[Package]:
    """Unpack the packages to ``root``, which is made, and keep their archives in ``debs``."""
    debs.mkdir()
    fetch = f'cd {debs} && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download -qq {AUTHORITIES}'
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--format=directory"),
            *(f"--setup-hook={MERGED}", f"--include={','.join(PACKAGES)}"),
            f'--extract-hook=cp "$1"/var/cache/apt/archives/*.deb {debs}',
            f"--extract-hook={fetch}",
            *(SUITE, str(root)),
        ],
        check=True,
    )
    packages = [_package(deb) for deb in sorted(debs.glob("*.deb"))]
    (authorities,) = debs.glob(f"{AUTHORITIES}_*.deb")
    subprocess.run(["dpkg-deb", "--extract", authorities, root], check=True)
    _complete(root)
    _trim(root)
    _list_packages(root, packages)
    return packages


def _package(deb: Path) -> Package:
    def said(*fields: str) -> str:
        command = ["dpkg-deb", "--field", str(deb), *fields]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    name, version, architecture = (
        said(field).strip() for field in ("Package", "Version", "Architecture")
    )
    return Package(name, version, architecture, said())


def _complete(root: Path) -> None:
    """Do by files what the scripts of the packages would do."""
    given = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = root / BUNDLE
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(each.read_bytes().rstrip() + b"\n" for each in given))
    # Where OpenSSL looks when nobody names a file.
    own = root / "usr/lib/ssl"
    own.mkdir(parents=True, exist_ok=True)
    (own / "cert.pem").symlink_to("/" + BUNDLE.as_posix())
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")


def _trim(root: Path) -> None:
    for name in LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in MOUNT_POINTS:
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for path in _documents(root / "usr/share/doc"):
        path.unlink()


def _documents(folder: Path) -> Iterator[Path]:
    """All but the licences."""
    for path in sorted(folder.rglob("*")):
        if path.name != "copyright" and (path.is_file() or path.is_symlink()):
            yield path


def _list_packages(root: Path, packages: list[Package]) -> None:
    """Where scanners look for the packages of an image without a package manager."""
    folder = root / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    for each in packages:
        (folder / each.name).write_text(each.control, "utf-8")
