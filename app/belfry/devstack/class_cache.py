"""The file in which Java finds prepared classes of a server: it halves the time of a start.

    <cache>/kafka-6876de711521
    <cache>/kafka-6876de711521.25.0.2.aot       of this bundle, for this Java

`class_training.py` makes the file. Java checks that it fits, and starts without it where it does
not fit or is missing.
"""

from __future__ import annotations

from pathlib import Path

from belfry.devstack.java import java_version


def class_cache(bundle: Path) -> Path:
    """The path of the file for a bundle; the file need not exist."""
    return bundle.with_name(f"{bundle.name}.{java_version()}.aot")


def class_cache_options(bundle: Path) -> list[str]:
    """Options that make Java use the file, empty where there is none."""
    cache = class_cache(bundle)
    # Java makes unfitting parts anew, and would log that in dozens of lines.
    return [f"-XX:AOTCache={cache}", "-Xlog:aot*=error"] if cache.exists() else []
