"""A disk under the state that is full, has little left, or takes no more.

What a worker does when its reserve of free space is gone (it gives its partitions away) is one
fault; what it does when writes fail nevertheless is another: there it has no reserve.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit
from typing import Final

from tests.acceptance.harness.site import wait_for
from tests.chaos.scene import Scene

SMALL_DISK: Final = "96m"
RESERVE_MB: Final = 32
BLOCK: Final = 64 * 1024
# A store is put on disk every twenty seconds, so a disk that is full shows within that time.
SHOWS_S: Final = 60.0
SYMPTOMS: Final = ("No space left", "File too large", "IO error")
UNFIT: Final = "this worker is unfit and gives its partitions away"


def full(scene: Scene) -> str:
    """The disk under the state fills up, and is emptied when that has shown."""
    with _on_small_disk(scene, reserve_mb=0) as data:
        begin = scene.log_size(scene.victim)
        with filled(data, leave_mb=0) as size:
            seen = _wait_symptom(scene, begin)
        scene.wait_calm()
    return f"{size} bytes filled a disk of {SMALL_DISK}: {seen}"


def low(scene: Scene) -> str:
    """The disk has less left than the reserve: the other worker takes over until there is room."""
    with _on_small_disk(scene, RESERVE_MB) as data:
        begin = scene.log_size(scene.victim)
        with filled(data, leave_mb=RESERVE_MB // 2) as size:
            wait_for(
                "the worker to notice", lambda: UNFIT in scene.said(scene.victim, begin), SHOWS_S
            )
            scene.wait_steady_has_all()
        scene.wait_calm()
    return f"{size} bytes on a disk of {SMALL_DISK}; all went to the other, and half came back"


def refuses(scene: Scene) -> str:
    """No file of the victim may grow beyond some bytes, as under a quota; then it may again."""
    scene.gather()
    pid, begin = scene.victim.child.pid, scene.log_size(scene.victim)
    prlimit(pid, RLIMIT_FSIZE, (1, RLIM_INFINITY))
    try:
        seen = _wait_symptom(scene, begin)
    finally:
        prlimit(pid, RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
    scene.wait_calm()
    return f"writes failed: {seen}"


def may_mount(folder: Path) -> bool:
    """Whether this process may mount a disk of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def _on_small_disk(scene: Scene, reserve_mb: int) -> Iterator[Path]:
    """The victim lives on a small disk, and shares the partitions; then it rests."""
    scene.rest()
    kept = dict(scene.victim.settings)
    scene.victim.settings["BELFRY_DISK_RESERVE_MB"] = str(reserve_mb)
    try:
        with small_disk(scene.victim.data_dir):
            scene.victim.start()
            scene.wait_calm()
            yield scene.victim.data_dir
            scene.rest()
    finally:
        scene.victim.settings = kept


@contextmanager
def filled(data: Path, leave_mb: int) -> Iterator[int]:
    """A file that leaves so much of the disk free, gone again at the end; its size."""
    filler = data / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while _free(data) > leave_mb << 20:
            file.write(bytes(BLOCK))
    try:
        yield filler.stat().st_size
    finally:
        filler.unlink()


def _free(folder: Path) -> int:
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize


def _wait_symptom(scene: Scene, begin: int) -> str:
    def symptom() -> str:
        # A worker whose log cannot be written to says it on its page only.
        text = scene.said(scene.victim, begin) + scene.victim.get("/healthz/ready")[1]
        return next((word for word in SYMPTOMS if word in text), "")

    return wait_for("the full disk to show", symptom, SHOWS_S)


@contextmanager
def small_disk(folder: Path, size: str = SMALL_DISK) -> Iterator[None]:
    """A folder as a disk of its own, of so many bytes, as `mount` understands them."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
