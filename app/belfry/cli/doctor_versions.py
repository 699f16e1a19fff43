"""`belfry doctor`: of which releases the workers are, and with which time zone data.

Workers with two versions of zone data work, each by its own.  But an instant that a newer one has
found may be held back at an older one (`later_release`), and a rule whose zone has changed fires at
an old hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.shown import plain

NAME: Final = "workers"


def version_checks(workers: Sequence[Mapping[str, Any]], zone_data: str) -> Iterator[Check]:
    """What differs between workers, or is older than here.

    `zone_data` is the version of the package `tzdata` beside this command.  Versions of it are
    IANA's, such as ``2026c``, and sort as texts.
    """
    releases = _by_version(workers, "version")
    if len(releases) > 1:
        detail = f"Workers are of several releases. {_told(releases)}."
        yield Check(NAME, Status.RISK, detail, "finish the rolling restart")
    zones = _by_version(workers, "zone_data")
    if len(zones) > 1:
        detail = f"Workers have several versions of time zone data. {_told(zones)}."
        to_do = "give all the same release of the package tzdata, and restart those with another"
        yield Check(NAME, Status.RISK, detail, to_do)
    elif zones and max(zones) < zone_data:
        yield Check(
            NAME,
            Status.RISK,
            f"The time zone data of the workers is older than this command's, {zone_data}."
            f" {_told(zones)}.",
            "update the package tzdata of the workers, and restart one after the other; what is"
            " pending in zones that have changed moves then (docs/schedules.md)",
        )


def _by_version(workers: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[str]]:
    """Workers by what they tell of themselves; those of a release that does not are left out."""
    found: dict[str, list[str]] = {}
    for worker in workers:
        if version := worker.get(name):
            found.setdefault(version, []).append(plain(worker["worker_id"]))
    return found


def _told(by_version: Mapping[str, list[str]]) -> str:
    return "; ".join(
        f"{plain(version)}: {', '.join(names)}" for version, names in sorted(by_version.items())
    )
