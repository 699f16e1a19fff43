"""Where Java finds what it has made of a server's classes before: half of a start is that.

    <cache>/kafka-6876de711521
    <cache>/kafka-6876de711521.25.0.2.aot       of this bundle, for this Java

`class_training.py` makes it. Java checks that it fits, and starts as ever where it does not, or
where there is none.
"""

from __future__ import annotations

from pathlib import Path

from belfry.devstack.java import java_version


def class_cache(bundle: Path) -> Path:
    """The file for a bundle, which need not be there."""
    return bundle.with_name(f"{bundle.name}.{java_version()}.aot")


def class_cache_options(bundle: Path) -> list[str]:
    """Options of Java by which it takes the file, where there is one."""
    cache = class_cache(bundle)
    # What of it does not fit is made anew, which Java would tell of in dozens of lines.
    return [f"-XX:AOTCache={cache}", "-Xlog:aot*=error"] if cache.exists() else []
