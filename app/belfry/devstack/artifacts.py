"""The files to run: fetched once, checked against pinned digests, kept in a cache.

``artifacts.lock`` names every file with its digest.  A *bundle* is one directory of the cache:

    <cache>/kafka-<digest of its lines>/*.jar
    <cache>/registry-<digest of its lines>/quarkus-run.jar, lib/, ...

It is filled under another name and renamed when it is complete, so a bundle that exists is whole,
and after the first time neither the network nor `jgo` is touched.  `fetching.py` gets the files.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from belfry.devstack.fetching import Pin, cache_dir, fetch_all

# The titles of bundles, for the person who waits for a download.
TITLES = {
    "kafka": "Apache Kafka 4.3.0",
    "registry": "Apicurio Registry 3.3.3",
    "connect": "Kafka Connect 4.3.0",
    "connect-file": "Connect's file plug-in 4.3.0",
    "connect-avro": "Apicurio's Avro converter 2.6.13.Final",
    "connect-jdbc": "Debezium's JDBC sink 3.6.0.Final",
    "connect-postgres": "Debezium's PostgreSQL source 3.6.0.Final",
}


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
    """Fetch missing files, so that a start needs no download any more."""
    kafka_jars()
    registry_home()


def pins(bundle: str) -> list[Pin]:
    """The pinned files of a bundle."""
    text = resources.files("belfry.devstack").joinpath("artifacts.lock").read_text("utf-8")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    every = [Pin(name, digest, int(size), where) for name, digest, size, where in rows]
    return [pin for pin in every if pin.bundle == bundle]


def _bundle(name: str) -> Path:
    """The directory of a bundle, filled at the first use; it may take minutes then.

    Raises `DevStackError` where the network or a digest fails. A directory that exists is whole.
    """
    wanted = pins(name)
    target = cache_dir() / f"{name}-{_digest_of_list(wanted)}"
    if not target.is_dir():
        with sole_maker(target):
            if not target.is_dir():
                _fill(target, TITLES[name], wanted)
    return target


def _digest_of_list(wanted: Sequence[Pin]) -> str:
    """The end of a bundle's name: another list of files gives another directory."""
    return hashlib.sha256("".join(pin.sha256 for pin in wanted).encode()).hexdigest()[:12]


@contextmanager
def sole_maker(target: Path) -> Iterator[None]:
    """Hold the lock of a target: of two first starts, the second finds the files of the first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(target: Path, title: str, wanted: Sequence[Pin]) -> None:
    """Fetch all files into a folder aside, and give it its name at the end."""
    with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as partial:
        complete = Path(partial, "bundle")
        complete.mkdir()
        files = fetch_all(title, wanted)
        for pin, file in zip(wanted, files, strict=True):
            _place(pin, file, complete)
        complete.rename(target)


def _place(pin: Pin, file: Path, directory: Path) -> None:
    """Put one file into the bundle: a copy, or an archive's content."""
    if pin.is_archive:
        with tarfile.open(file) as archive:
            archive.extractall(directory, filter="data")
    else:
        shutil.copyfile(file, directory / file.name)
