"""Fetches pinned files: a few at once, with their progress shown, each checked against its digest.

Downloads go through the local Maven repository (``~/.m2``), so files that another tool has fetched
are taken from there.  A file that does not have its digest, such as the rest of an interrupted
download, is thrown away and fetched again, once:

    ~/.m2 has it        ─► digest fits                  ─► done
    not there yet       ─► downloaded ─► digest fits    ─► done
    a torn download     ─► digest does not fit          ─► downloaded once more
    it does not again   ─► DevStackError: a proxy or a mirror changes it

`artifacts.py` says which files are wanted, and puts them into the cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

from belfry.devstack.errors import DevStackError

# Files under way at once; a repository answers a few connections as quickly as many.
PARALLEL_DOWNLOADS = 6
# A context manager that yields a function taking the number of bytes that came in; one object is
# entered by several downloads at once.
Fetched = AbstractContextManager[Callable[[int], None]]


@dataclass(frozen=True)
class Pin:
    """One file of a bundle, to the byte."""

    # Which directory of the cache it belongs to.
    bundle: str
    sha256: str
    # Bytes, for the progress bar.
    size: int
    # Maven's: ``group:name:version``, or with classifier and packaging behind it.
    coordinates: str

    @property
    def is_archive(self) -> bool:
        """Whether the file is unpacked into the bundle instead of copied."""
        return self.coordinates.endswith(":tar.gz")


def cache_dir() -> Path:
    """The directory of bundles.

    ``$BELFRY_CACHE_DIR``, else ``$XDG_CACHE_HOME/belfry``, else ``~/.cache/belfry``.
    """
    if given := os.environ.get("BELFRY_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belfry"


def fetch_all(title: str, wanted: Sequence[Pin]) -> list[Path]:
    """The files in the order of their pins; after a failure no further download begins."""
    total_bytes = sum(pin.size for pin in wanted)
    with (
        fetch_progress(title, total_bytes) as fetched,
        ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool,
    ):
        waiting = [pool.submit(_fetch, pin, fetched) for pin in wanted]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch(pin: Pin, fetched: Fetched) -> Path:
    """The file in the local Maven repository, with the pinned digest."""
    resolve = _resolution(pin, fetched)
    for _ in range(2):
        file = _download(pin, resolve)
        if _sha256(file) == pin.sha256:
            return file
        file.unlink()
    raise DevStackError(
        f"{pin.coordinates} was downloaded twice, and its content is not the pinned one "
        f"(sha256 {pin.sha256}). A proxy or mirror in between may change it; nothing was kept."
    )


def _resolution(pin: Pin, fetched: Fetched) -> Callable[[], Path]:
    """A function that fetches one file, or finds it in the local Maven repository."""
    # Imported here: jgo and its imports take 0.3 s, which only the first start needs.
    from jgo.maven import MavenContext, PythonResolver

    group, name, version, *kind = pin.coordinates.split(":")
    context = MavenContext(
        resolver=PythonResolver(progress_callback=lambda _file, _size: fetched), timeout=60
    )
    component = context.project(group, name).at_version(version)
    classifier, packaging = kind or ("", "jar")
    return component.artifact(classifier=classifier, packaging=packaging).resolve


def _download(pin: Pin, resolve: Callable[[], Path]) -> Path:
    """Fetch one file; raises `DevStackError` with what to do."""
    try:
        return resolve()
    except (OSError, RuntimeError) as failure:
        raise DevStackError(
            f"{pin.coordinates} could not be downloaded: {failure}. The first start needs access "
            "to Maven Central (some 200 MB); later ones take everything from the cache "
            f"{cache_dir()}."
        ) from failure


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def fetch_progress(title: str, total_bytes: int) -> Iterator[Fetched]:
    """Show the download of ``title`` on standard error as long as the context lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"Fetching {title} ({total_bytes // 1_000_000} MB, the first time only)")
        yield nullcontext(lambda _bytes: None)
        return
    with _bar(console) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield nullcontext(lambda count: bar.advance(task, count))


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        console=console,
        transient=True,
    )
