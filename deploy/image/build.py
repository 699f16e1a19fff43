"""`make image`: an OCI image of belfry, built without Docker, the same bytes each time.

    Debian's packages  ─► layer 1    the Python of the tests, by its minor version
    locks/product.lock ─► layer 2    each wheel by its hash, in /opt/belfry
    this tree          ─► layer 3    the wheel of belfry, and the list of all that is inside

How a container is started, `compose/Dockerfile` says (`dockerfile.py`).  What differs between two
builds is fixed: instants (`SOURCE_DATE_EPOCH`, else that of the last commit), owners, order, and
the seed of hashes while Python compiles.  The same packages of Debian give the same bytes; the
list inside names them.

Needs Linux, root, mmdebstrap, binutils, and Python 3.11.
"""

from __future__ import annotations

import ensurepip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from belfry import __version__
from deploy.image import debian, dockerfile, oci
from deploy.image.stripping import strip

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "compose" / "Dockerfile"
LOCK: Final = ROOT / "locks" / "product.lock"
ARCHIVE: Final = ROOT / "dist" / "belfry-image.tar"
MOST_BYTES: Final = 250_000_000
PREFIX: Final = "opt/belfry"
SBOM: Final = f"{PREFIX}/sbom.cdx.json"
USERS: Final = (
    "root:x:0:0:root:/root:/sbin/nologin\nbelfry:x:{0}:{0}:belfry:/var/lib/belfry:/sbin/nologin\n"
)
PLATFORMS: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageError(Exception):
    """The image cannot be built here, and why."""


def main() -> None:
    """Build the image, and say what came out."""
    epoch = _epoch()
    with tempfile.TemporaryDirectory(prefix="belfry-image-") as folder:
        layers = _layers(Path(folder), epoch)
    arguments = {"VERSION": __version__, "REVISION": _git("rev-parse", "HEAD")}
    runtime = dockerfile.runtime(DOCKERFILE.read_text("utf-8"), arguments)
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    platform = {"os": "linux", "architecture": PLATFORMS[os.uname().machine]}
    described = oci.image(layers, runtime, platform, created)
    ARCHIVE.parent.mkdir(exist_ok=True)
    digest = oci.write(ARCHIVE, f"belfry:{__version__}", layers, described, epoch)
    for each in layers:
        print(
            f"  {each.size / 1e6:6.1f} MB, packed {len(each.blob.content) / 1e6:5.1f}: {each.title}"
        )
    size = sum(each.size for each in layers)
    print(f"{ARCHIVE.relative_to(ROOT)}: {digest}, {size / 1e6:.0f} MB unpacked")
    if size > MOST_BYTES:
        raise ImageError(f"The image has {size} bytes, and may have {MOST_BYTES}.")


def _layers(folder: Path, epoch: int) -> list[oci.Layer]:
    root = folder / "root"
    layers: list[oci.Layer] = []
    seen: set[Path] = set()

    def add(title: str) -> None:
        there = {path for path in root.rglob("*") if not path.is_relative_to(root / "build")}
        layers.append(oci.layer(root, there - seen, epoch, title))
        seen.update(there)

    packages = debian.unpacked(root, folder / "debs")
    _compile(root, f"/usr/lib/{debian.PYTHON}")
    add(f"Debian {debian.SUITE}: {', '.join((*debian.PACKAGES, debian.AUTHORITIES))}")
    _install_locked(root)
    add("locks/product.lock")
    _install_belfry(root, epoch)
    (root / SBOM).write_text(json.dumps(_bill(packages), indent=1, sort_keys=True) + "\n")
    add(f"belfry {__version__}")
    return layers


def _install_locked(root: Path) -> None:
    wheels = root / "build" / "wheels"
    wheels.mkdir(parents=True)
    _pip_of_this("download", "--only-binary", ":all:", "-d", str(wheels), "-r", str(LOCK))
    shutil.copy(LOCK, root / "build")
    for pip in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        shutil.copy(pip, root / "build" / "pip.whl")
    _inside(root, f"/usr/bin/{debian.PYTHON}", "-m", "venv", "--without-pip", f"/{PREFIX}")
    _pip_inside(
        root, "--find-links", "/build/wheels", "--require-hashes", "-r", "/build/product.lock"
    )
    strip(root / PREFIX / "lib" / debian.PYTHON / "site-packages")
    _compile(root, f"/{PREFIX}")


def _install_belfry(root: Path, epoch: int) -> None:
    out = root / "build" / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        check=True,
    )
    (wheel,) = out.glob("*.whl")
    _pip_inside(root, f"/build/dist/{wheel.name}")
    _compile(root, f"/{PREFIX}")
    runtime = dockerfile.runtime(DOCKERFILE.read_text("utf-8"), {})
    user = int(runtime["User"].partition(":")[0])
    (root / "etc/passwd").write_text(USERS.format(user))
    (root / "etc/group").write_text(f"root:x:0:\nbelfry:x:{user}:\n")
    home = root / runtime["WorkingDir"].lstrip("/")
    home.mkdir(mode=0o700, parents=True)
    os.chown(home, user, user)


def _pip_of_this(*words: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
    subprocess.run([sys.executable, "-m", "pip", words[0], *quiet, *words[1:]], check=True)


def _pip_inside(root: Path, *words: str) -> None:
    quiet = ("--quiet", "--no-deps", "--no-index", "--no-compile", "--no-cache-dir")
    pip = ("/build/pip.whl/pip", "install", "--root-user-action=ignore", *quiet)
    _inside(root, f"/{PREFIX}/bin/python", *pip, *words)


def _compile(root: Path, folder: str) -> None:
    """One process, in a fixed order: how a constant is written depends on what came before it."""
    compiled = ("-m", "compileall", "-q", "-j", "1", "--invalidation-mode", "unchecked-hash")
    _inside(root, f"/usr/bin/{debian.PYTHON}", *compiled, folder)


def _inside(root: Path, *command: str) -> None:
    environment = {"PATH": dockerfile.PATH, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    subprocess.run(["chroot", str(root), *command], env=environment, check=True)


def _bill(packages: list[debian.Package]) -> dict[str, Any]:
    """The list of `make sbom`, and the packages of Debian."""
    path = ROOT / "dist" / "belfry.cdx.json"
    bill: dict[str, Any] = json.loads(path.read_text("utf-8"))
    bill["components"] += [each.component() for each in packages]
    return bill


def _epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    if os.geteuid() != 0 or not (shutil.which("mmdebstrap") and shutil.which("strip")):
        sys.exit("make image needs root, and Debian's packages mmdebstrap and binutils.")
    if f"python{sys.version_info[0]}.{sys.version_info[1]}" != debian.PYTHON:
        sys.exit(f"make image needs a .venv of {debian.PYTHON}, whose wheels the image gets.")
    try:
        main()
    except ImageError as error:
        sys.exit(str(error))
