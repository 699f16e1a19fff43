"""What becomes of what was due while no worker ran, by each policy; and of a pause, and of haste.

    worker ●────────────●                    ●────────────────●
    every    ○ ○ ○ ○ ○ ○  ○ ○ ○ ○ ○ ○ ○ ○ ○ ○  ○ ○ ○ ○ ○ ○ ○ ○
                          └── nobody fires ──┘

Nothing here depends on how quick the machine is: each record says which occurrence it is and how
many it stands for, and the gaps between them have to add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from belfry.schedules.instants import parse_instant
from tests.acceptance.harness.evidence import rfc3339
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

INTERVAL_MS = 250
RECURRING = ("FIRE_ONCE", "FIRE_ALL", "SKIP", "paused")
GIVEN_UP = re.compile(r"(\d+) occurrences? did not fire, from (\S+)")


def test_each_policy_after_an_outage(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("misfire"), tmp_path) as site:
        worker = site.worker().start().wait_ready()
        rule: dict[str, Any] = {
            "kind": "EVERY", "interval_ms": INTERVAL_MS, "max_lateness_ms": 300,
        }  # fmt: skip
        for name in RECURRING:
            misfire = "FIRE_ONCE" if name == "paused" else name
            site.ask("t", name, misfire=misfire, **rule)
        before = {name: len(fired(site, name, 2)) for name in RECURRING}
        site.ask("t", "paused", action="PAUSE", request_id="pause")
        assert site.outcome("pause")["outcome"] == "PAUSED"
        site.ask("t", "waits", at=now_ms() + 300)
        site.ask("t", "spoils", at=now_ms() + 300, max_lateness_ms=100)
        assert worker.stop() == 0
        stopped_ms = now_ms()
        for name, at in (("asked late", stopped_ms), ("asked too late", stopped_ms - 60_000)):
            site.ask("t", name, at=at, max_lateness_ms=50_000)
        # A window that begins and ends while nobody reads: it counts from when Kafka had it.
        window = {**rule, "end_at": now_ms() + 1_500, "misfire": "FIRE_ALL"}
        came_ms = site.ask("t", "window", request_id="window", **window).timestamp()[1]
        wait_for("an outage", lambda: now_ms() > stopped_ms + 2_500)
        site.worker().start().wait_ready()
        for name in RECURRING[:3]:
            fired(site, name, before[name] + 4)
        site.ask("t", "paused", action="RESUME", request_id="resume")
        assert site.outcome("resume")["outcome"] == "RESUMED"
        fired(site, "paused", before["paused"] + 4)
        for name in RECURRING:
            site.ask("t", name, action="CANCEL", request_id=f"cancel {name}")
        assert site.outcome(f"cancel {RECURRING[-1]}")["outcome"] == "CANCELLED"
        for name in RECURRING:
            adds_up(fired(site, name, 4), given_up(site, name), name)
        assert [len(of(site, name)) for name in ("waits", "asked late")] == [1, 1]
        assert site.outcome("window")["outcome"] == "ACCEPTED"
        beats = range(came_ms + INTERVAL_MS, window["end_at"] + 1, INTERVAL_MS)
        assert [each.header("belfry-scheduled-at") for each in of(site, "window")] == [
            rfc3339(ms) for ms in beats
        ]
        for name in ("spoils", "asked too late"):
            assert of(site, name) == []
            assert [number for number, _ in given_up(site, name)] == [1]


def of(site: Site, name: str) -> list[Record]:
    """A schedule's records, in the order of its partition."""
    return [r for r in site.fired("t") if r.header("belfry-schedule-id") == name.encode()]


def fired(site: Site, name: str, count: int) -> list[Record]:
    """The same, once there are so many."""
    what = f"{count} of {name}"
    return wait_for(what, lambda: found if len(found := of(site, name)) >= count else [])


def given_up(site: Site, name: str) -> list[tuple[int, int]]:
    """How many occurrences were given up, and the first of them (epoch ms)."""
    told = [each for each in site.outcomes()[""] if each["schedule_id"] == name]
    found = [GIVEN_UP.match(each["reason"]) for each in told if each["outcome"] == "MISSED"]
    return [(int(match[1]), parse_instant(match[2])) for match in found if match]


def adds_up(records: list[Record], told: list[tuple[int, int]], name: str) -> None:
    """Each occurrence fired, or another fired for it, or it was given up and told of."""
    numbers = [int(record.header("belfry-occurrence") or b"") for record in records]
    assert numbers == list(range(len(records)))
    instants = [
        parse_instant((record.header("belfry-scheduled-at") or b"").decode()) for record in records
    ]
    missed = [int(record.header("belfry-missed") or b"0") for record in records]
    gaps = [(later - earlier) // INTERVAL_MS - 1 for earlier, later in pairwise(instants)]
    assert max(gaps) >= (0 if name == "FIRE_ALL" else 3)
    if name == "SKIP":
        assert not any(missed)
        within = [number for number, at in told if instants[0] < at < instants[-1]]
        assert sum(within) == sum(gaps)
    else:
        assert missed[1:] == gaps
        assert sum(number for number, _ in told) == sum(missed)
    if name == "FIRE_ALL":
        assert not any(gaps)
