"""The files to run: fetched once, checked against pinned digests, kept in a cache.

``artifacts.lock`` names every file with its digest.  A *bundle* is one directory of the cache:

    <cache>/kafka-<digest of its lines>/*.jar
    <cache>/registry-<digest of its lines>/quarkus-run.jar, lib/, ...

It is filled under another name and renamed when it is complete, so a bundle that exists is whole,
and after the first time neither the network nor `jgo` is touched.  Downloads go through the local
Maven repository (``~/.m2``); a file there that does not have its digest, such as the rest of an
interrupted download, is fetched again.

The cache is ``$BELFRY_CACHE_DIR``, else ``$XDG_CACHE_HOME/belfry``, else ``~/.cache/belfry``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

from belfry.devstack.errors import DevStackError

PARALLEL_DOWNLOADS = 6
TITLES = {
    "kafka": "Apache Kafka 4.3.0",
    "registry": "Apicurio Registry 3.3.3",
    "connect": "Kafka Connect 4.3.0",
    "connect-file": "Connect's file plug-in 4.3.0",
    "connect-avro": "Apicurio's Avro converter 2.6.13.Final",
    "connect-jdbc": "Debezium's JDBC sink 3.6.0.Final",
    "connect-postgres": "Debezium's PostgreSQL source 3.6.0.Final",
}
# A context manager that yields a function taking the number of bytes that came in; one object is
# entered by several downloads at once.
Fetched = AbstractContextManager[Callable[[int], None]]


@dataclass(frozen=True)
class Pin:
    """One file of a bundle, to the byte."""

    bundle: str
    sha256: str
    size: int
    coordinates: str

    @property
    def is_archive(self) -> bool:
        """Whether the file is unpacked into the bundle instead of copied."""
        return self.coordinates.endswith(":tar.gz")


def kafka_jars() -> Path:
    """Directory of the jars that make up a Kafka broker."""
    return _bundle("kafka")


def registry_home() -> Path:
    """Directory of the unpacked registry."""
    return _bundle("registry")


def connect_jars() -> Path:
    """Directory of the jars that make up a worker of Kafka Connect."""
    return _bundle("connect")


def connect_plugin(name: str) -> Path:
    """Directory of one plug-in of Connect: ``file``, ``avro`` or ``jdbc``."""
    return _bundle(f"connect-{name}")


def prepare() -> None:
    """Fetch what is missing, so that starting takes no download any more."""
    kafka_jars()
    registry_home()


def cache_dir() -> Path:
    """Where bundles are kept."""
    if given := os.environ.get("BELFRY_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belfry"


def pins(bundle: str) -> list[Pin]:
    """The pinned files of a bundle."""
    text = resources.files("belfry.devstack").joinpath("artifacts.lock").read_text("utf-8")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    every = [Pin(name, digest, int(size), where) for name, digest, size, where in rows]
    return [pin for pin in every if pin.bundle == bundle]


def _bundle(name: str) -> Path:
    wanted = pins(name)
    target = cache_dir() / f"{name}-{_digest_of_list(wanted)}"
    if not target.is_dir():
        with _fetching(target):
            if not target.is_dir():
                _fill(target, TITLES[name], wanted)
    return target


def _digest_of_list(wanted: Sequence[Pin]) -> str:
    return hashlib.sha256("".join(pin.sha256 for pin in wanted).encode()).hexdigest()[:12]


@contextmanager
def _fetching(target: Path) -> Iterator[None]:
    """Two first starts at once: the second waits and then finds the bundle."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(target: Path, title: str, wanted: Sequence[Pin]) -> None:
    with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as partial:
        complete = Path(partial, "bundle")
        complete.mkdir()
        files = _fetch_all(title, wanted)
        for pin, file in zip(wanted, files, strict=True):
            _place(pin, file, complete)
        complete.rename(target)


def _place(pin: Pin, file: Path, directory: Path) -> None:
    if pin.is_archive:
        with tarfile.open(file) as archive:
            archive.extractall(directory, filter="data")
    else:
        shutil.copyfile(file, directory / file.name)


def _fetch_all(title: str, wanted: Sequence[Pin]) -> list[Path]:
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
    """The file in the local Maven repository, with the digest it has to have."""
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
    # Imported here: jgo and what it needs take 0.3 s, and only the first start pays for it.
    from jgo.maven import MavenContext, PythonResolver

    group, name, version, *kind = pin.coordinates.split(":")
    context = MavenContext(
        resolver=PythonResolver(progress_callback=lambda _file, _size: fetched), timeout=60
    )
    component = context.project(group, name).at_version(version)
    classifier, packaging = kind or ("", "jar")
    return component.artifact(classifier=classifier, packaging=packaging).resolve


def _download(pin: Pin, resolve: Callable[[], Path]) -> Path:
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
