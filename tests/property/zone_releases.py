"""Two releases of time zone data, made up, and what a time on the wall is by each of them.

A release is a folder as the package `tzdata` has it, with the one zone `Europe/Paris`, so a worker
reads it as it reads the real one.  The oracle reads the same files by `zoneinfo`, and turns a time
on the wall into an instant by a walk over minutes.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from belfry.schedules.triggers import zones
from belfry.schedules.triggers.zones import Zone

ZONE: Final = "Europe/Paris"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
# The rule of a release, as POSIX writes it; none is more than an hour from the first.
RULES: Final = {
    "2030a": "CET-1CEST,M3.5.0,M10.5.0/3",
    "weeks later": "CET-1CEST,M4.3.0,M11.2.0/3",
    "weeks before": "CET-1CEST,M3.2.0,M10.1.0/3",
    "two hours": "CET-1CEST-3,M3.5.0,M10.5.0/3",
    "half an hour": "CET-1CEST-1:30,M3.5.0,M10.5.0/3",
    "abolished": "CET-1",
    "for ever": "CEST-2",
}


def tzif(rule: str) -> bytes:
    """A file of RFC 9636 whose offsets all come from its footer."""
    head = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    body = struct.pack(">lBB4s", 3600, 0, 0, b"CET\0")
    return head + body + head + body + b"\n" + rule.encode() + b"\n"


def wall_clock(version: str) -> ZoneInfo:
    """The zone by a release, as the oracle reads it."""
    return ZoneInfo.from_file(BytesIO(tzif(RULES[version])), key=ZONE)


def ms_of(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def instant_ms(wall: datetime, zone: ZoneInfo) -> int:
    """When a clock first shows this time, or the end of the gap that swallows it."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return ms_of(moment)
    while moment.astimezone(zone).replace(tzinfo=None) > wall:
        moment -= MINUTE
    return ms_of(moment + MINUTE)


class Releases:
    """Lets the process have one release or the other, as a worker has one."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self._kept: dict[tuple[str, str | None], Zone] = {}
        self._forget: list[Callable[[], None]] = []
        for name, module in list(sys.modules.items()):
            if name.startswith(("belfry.schedules.triggers", "belfry.engine.compiled_rule")):
                for each in list(vars(module).values()):
                    clear = getattr(each, "cache_clear", None)
                    if callable(clear):
                        self._forget.append(clear)

    def use(self, version: str) -> None:
        """From here on the zone is as this release has it, and nothing of before is remembered."""
        place = self._folder / version
        if not place.exists():
            (place / "zoneinfo" / "Europe").mkdir(parents=True)
            (place / "zones").write_text(f"{ZONE}\nUTC\n")
            (place / "zoneinfo" / ZONE).write_bytes(tzif(RULES[version]))
            (place / "zoneinfo" / "UTC").write_bytes(tzif("UTC0"))
        stand_in: Any = SimpleNamespace(files=lambda _: place)
        self._patch.setattr(zones, "resources", stand_in)
        self._patch.setattr(zones, "VERSION", version)

        def kept(zone: ZoneInfo) -> Zone:
            found = self._kept.get((version, zone.key))
            if found is None:
                found = self._kept[version, zone.key] = Zone(zone)
            return found

        self._patch.setattr(zones, "Zone", kept)
        self.forget()

    def forget(self) -> None:
        """Empty what the process keeps of rules and zones."""
        for clear in self._forget:
            clear()
