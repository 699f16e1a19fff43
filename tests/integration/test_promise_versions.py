"""Releases share a group; what one writes that the other cannot read stops that partition alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from belfry import __version__
from belfry.schedules.identity import Homes
from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_standbys import cluster, problems
from tests.simulation.planting import edited

pytestmark = pytest.mark.slow

NEXT: Final = "99.0.0"
TENANTS: Final = tuple(f"t{number}" for number in range(16))
ALL: Final = set(range(4))
NEXT_RELEASE: Final = [
    {
        "file": "belfry/__init__.py",
        "old": f'__version__ = "{__version__}"',
        "new": f'__version__ = "{NEXT}"',
    }
]
# A release that writes manifests of another version, and still reads those of this one.
NEXT_RECORDS: Final = [
    *NEXT_RELEASE,
    {
        "file": "belfry/store/layout/manifests.py",
        "old": "_MANIFEST.pack(FORMAT, letter,",
        # 2 and 3 are rows that are signed.
        "new": "_MANIFEST.pack(4, letter,",
    },
    {
        "file": "belfry/store/layout/records.py",
        "old": "record[0] != FORMAT",
        "new": "record[0] not in (FORMAT, 4)",
    },
]


# A worker whose time zone data is older than the zone.
LACKS_A_ZONE: Final = [
    {
        "file": "belfry/schedules/triggers/zones.py",
        "old": '.read_text("utf-8").split())',
        "new": '.read_text("utf-8").split()) - {"Europe/Paris"}',
    }
]


def of_release(site: Site, edits: list[dict[str, str]], folder: Path) -> Worker:
    """A worker that runs another release's files."""
    worker = site.worker()
    worker.settings["PYTHONPATH"] = str(edited("release", edits, folder))
    return worker


def ask(site: Site, part: str) -> None:
    """One event of each tenant, due soon."""
    for tenant in TENANTS:
        site.ask(tenant, part, at=now_ms() + 500, payload=part.encode())


def wait_fired(site: Site, count: int) -> None:
    """Wait until so many have fired; none may fire twice."""
    wait_for(f"{count} fired", lambda: len(site.fired(*TENANTS)) >= count, 40)
    assert len(site.fired(*TENANTS)) == count


def test_two_releases_share_a_group_and_take_over_from_each_other(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("releases"), tmp_path) as site:
        site.fired_topics(TENANTS)
        old = site.worker().start()
        new = of_release(site, NEXT_RELEASE, tmp_path / "next").start()
        wait_for("both to have a share", lambda: divided([old, new]), 60)
        for worker in (old, new):
            versions = {each["version"] for each in cluster(worker)["members"]}
            assert versions == {__version__, NEXT}
        ask(site, "shared")
        wait_fired(site, len(TENANTS))
        assert old.stop() == 0
        wait_for("the new one to own all", lambda: owned(new) == ALL, 30)
        ask(site, "new")
        wait_fired(site, 2 * len(TENANTS))
        old.start()
        wait_for("both to have a share", lambda: divided([old, new]), 60)
        assert new.stop() == 0
        wait_for("the old one to own all", lambda: owned(old) == ALL, 30)
        ask(site, "old")
        wait_fired(site, 3 * len(TENANTS))
        assert old.stop() == 0


def test_records_of_the_next_release_stop_their_partitions_on_this_one(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("records"), tmp_path) as site:
        site.fired_topics(TENANTS)
        old = site.worker().start().wait_ready()
        ask(site, "before")
        wait_fired(site, len(TENANTS))
        new = of_release(site, NEXT_RECORDS, tmp_path / "next").start()
        wait_for("half to have moved", lambda: halved(old, new), 60)
        kept, taken = owned(old), owned(new)
        ask(site, "shared")
        wait_fired(site, 2 * len(TENANTS))
        new.kill()
        # The group gives everything to the old one, which says what it cannot read.
        wait_for("a sentence", lambda: "Run the version that wrote it" in problems(old), 40)
        wait_for("each to be stopped", lambda: stopped(old) == taken, 20)
        assert (owned(old), old.ready) == (kept, False)
        ask(site, "meanwhile")
        new.start()
        wait_for("half to be the other's", lambda: halved(old, new), 60)
        assert (owned(old), owned(new)) == (kept, taken)
        wait_fired(site, 3 * len(TENANTS))
        wait_for("the old one to be ready", lambda: old.ready, 20)
        assert old.stop() == 0
        assert new.stop() == 0


def halved(one: Worker, other: Worker) -> bool:
    """Whether each owns two of the four, as the group ends up dividing them."""
    return divided([one, other]) and len(owned(one)) == len(owned(other)) == 2


def stopped(worker: Worker) -> set[int]:
    """Partitions of which a worker says that it cannot read them."""
    page = json.loads(problems(worker))
    told = [each for each in page["partitions"] if "Run the version" in (each["missing"] or "")]
    return {each["partition"] for each in told}


def test_a_zone_that_one_worker_lacks_stops_nobody(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    tenant = next(name for n in range(99) if Homes(4).of(name := f"zoned{n}") == 3)
    with Site(kafka, unique("zones"), tmp_path) as site:
        site.fired_topics([*TENANTS, tenant])

        def wait_zoned() -> None:
            """Wait until the schedule by the clock of the zone fires twice more."""
            count = len(site.fired(tenant)) + 2
            wait_for("the zone's schedule", lambda: len(site.fired(tenant)) >= count, 40)

        new = site.worker().start().wait_ready()
        rule = {"kind": "CRON", "cron": "* * * * * *", "timezone": "Europe/Paris"}
        site.ask(tenant, "zoned", **rule)
        wait_zoned()
        old = of_release(site, LACKS_A_ZONE, tmp_path / "old").start()
        # The old one is given partition 3 first, and leaves it to the one that can fire all of it.
        wait_for("half to have moved", lambda: halved(old, new) and 3 in owned(new), 60)
        wait_zoned()
        ask(site, "shared")
        wait_fired(site, len(TENANTS))
        new.kill()
        wait_for("the old one to own all", lambda: owned(old) == ALL and old.ready, 40)
        ask(site, "alone")
        wait_fired(site, 2 * len(TENANTS))
        wait_for("it to be held back", lambda: "a schedule is held back" in old.said(), 20)
        new.start()
        wait_for("the new one to have it back", lambda: 3 in owned(new), 60)
        wait_zoned()
        occurrences = [record.header("belfry-occurrence") for record in site.fired(tenant)]
        assert occurrences == [b"%d" % number for number in range(len(occurrences))]
        assert old.stop() == 0
        assert new.stop() == 0
