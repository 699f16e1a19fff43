"""``make rescale``: 4 partitions become 16 under a load, and groups leave all but 6 of them.

Two workers are killed at random all through, and amid `belfry rebalance grow` with the command
itself. Single events with cancels and updates, and recurring ones of every kind come in; one tenant
has as many requests as twelve others. The end is audited by the harness, `belfry verify` and
`belfry audit`.

``make rescale PLANT=1`` plays it with a bug in the workers (`lost_row.py`): one schedule is lost as
it moves, and the audit has to name that one, and no other that is lost, doubled, early or ended.
`LOAD` is the number of requests a second, and `GROWN` and `LEFT` the partitions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.devstack import Stack
from belfry.placement.key_groups import KeyGroups
from tests.acceptance.harness.evidence import Report
from tests.acceptance.harness.follow import DRAIN_S, Follower
from tests.acceptance.harness.load import Load, Shape
from tests.acceptance.harness.rescaling import Rescaling
from tests.acceptance.harness.rescaling import Shape as Rescale
from tests.acceptance.harness.rhythm_follow import RhythmFollower
from tests.acceptance.harness.rhythms import PULSES, SPREAD, RhythmLoad
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.verifying import assert_verified, verified
from tests.rescale.lost_row import LostRow

HOMES: Final = 4
GROWN, LEFT = int(os.environ.get("GROWN", "16")), int(os.environ.get("LEFT", "6"))
TENANTS: Final = tuple(f"t-{number:02}" for number in range(32))
HOT: Final = "hot"
# As often as it stands here, a tenant is drawn.
DRAWN: Final = (*TENANTS, *(HOT,) * 12)
# A spread tenant belongs to no key group, and stays.
MOVABLE: Final = (*TENANTS, HOT, *(each for each in PULSES if each != SPREAD))
PER_SECOND: Final = int(os.environ.get("LOAD", "150"))
RHYTHMS_PER_SECOND: Final = PER_SECOND / 100
# How long what is lost is waited for: it never comes.
PATIENCE_S: Final = 30.0
# How long only homes are there.
BEFORE_S: Final = 10.0
GIVEN: Final = {
    "KEY_GROUP_MOVES": "true",
    "HTTP_WORKER_SECRET": "what workers of this test share",
    "CLUSTER__PARTITIONS": f"{HOMES}",
    "SESSION_TIMEOUT_MS": "6000",
}


class Run:
    """The load, the workers, and what came of both."""

    def __init__(self, site: Site, kills: int, seed: int) -> None:
        self.site = site
        even = {"within": 0.2, "used": 0.6}
        shape = Rescale(homes=HOMES, workers=2, kills=kills, tenants=MOVABLE, seed=seed, **even)
        self.rescaling = Rescaling(site, shape)
        self.load = Load(site, Shape(PER_SECOND, (1.0, 8.0), seed), tenants=DRAWN)
        self.rhythms = RhythmLoad(site, RHYTHMS_PER_SECOND, seed)
        self.rhythm_follower = RhythmFollower(site, self.rhythms)
        self.seconds: dict[str, int] = {}
        # Partitions that were used at most.
        self.used = 0
        self._began_s = time.monotonic()

    def play(self) -> None:
        """All of it, up to where groups rest in what is left."""
        self.site.schedules_topic(HOMES)
        self.site.fired_topics((*TENANTS, HOT))
        self.rhythms.prepare()
        self.rescaling.start()
        self.load.start()
        self.rhythms.start()
        self.rhythm_follower.start()
        time.sleep(BEFORE_S)
        self._passed("started")
        self.rescaling.grow(GROWN)
        # Strays come in at the new partitions as well, from here on.
        time.sleep(3.0)
        self.load.partitions = GROWN
        self._passed("grown")
        self.rescaling.over(GROWN)
        self.used = len(self.rescaling.places)
        self._passed(f"over {GROWN}")
        self.rescaling.over(LEFT)
        self._passed(f"over {LEFT}")

    def _passed(self, phase: str) -> None:
        self.seconds[phase] = round(time.monotonic() - self._began_s)
        self.rescaling.phases[phase] = now_ms()

    def figures(self, log_dir: Path, patience_s: float = DRAIN_S) -> tuple[dict[str, Any], Report]:
        """Figures of the run, and what is wrong with it: stops the load and audits."""
        follower = Follower(self.site, self.load.stop(), {*DRAWN}, log_dir)
        report = follower.drain(max(self.load.last_due_ms, now_ms()), patience_s)
        follower.close()
        report.findings += self.rhythm_follower.drain()
        self._passed("audited")
        rescaling = self.rescaling
        return {
            "seconds": self.seconds,
            "kills": [kill.how for kill in rescaling.kills],
            "grow_killed_at": rescaling.halfway,
            "tenants_moved": len(rescaling.moved),
            "partitions_used": [self.used, len(rescaling.places)],
            "hot_tenant_moved": HOT in rescaling.moved,
            "requests": report.requests,
            "fired": report.fired,
            "recurring": len(self.rhythms.rhythms),
            "recurring_fired": len(self.rhythm_follower.evidence.fired),
            "overrun": report.overrun,
            "late_of_moved": rescaling.lateness(follower.evidence),
            "findings": len(report.findings),
        }, report


def audited_moves(site: Site) -> list[dict[str, Any]]:
    """What `belfry audit` lists of moves."""
    given = {
        "BELFRY_BOOTSTRAP_SERVERS": site.bootstrap,
        "BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix,
        "BELFRY_CLUSTER__APP_ID": site.name,
    }
    command = [sys.executable, "-m", "belfry.cli", "audit", "list", "--since", "1h", "-o", "jsonl"]
    env = {**os.environ, **given}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [each for each in events if each["action"] == "key_group.move"]


def plays() -> tuple[int, int]:
    """How many kills in each phase, and the seed, as they were asked for."""
    return int(os.environ["KILLS"]), int(os.environ.get("SEED", "5"))


def tell(figures: dict[str, Any]) -> None:
    """Print the result of a run."""
    print("\n" + json.dumps(figures, indent=1))  # noqa: T201  # the run's result


ASKED: Final = "KILLS" in os.environ
PLANTED: Final = bool(os.environ.get("PLANT"))

if ASKED and not PLANTED:  # Under CI a skip is a failure, and nobody waits ten minutes there.

    @pytest.mark.timeout(1_800)
    def test_four_partitions_become_sixteen_and_six(
        kafka: str, idle_stack: Stack, tmp_path: Path, unique: Callable[[str], str]
    ) -> None:
        kills, seed = plays()
        with Site(kafka, unique("rescale"), tmp_path, **GIVEN) as site:
            run = Run(site, kills, seed)
            run.play()
            figures, report = run.figures(idle_stack.kafka.log_dir)
            for worker in run.rescaling.workers:
                assert worker.stop() == 0
            moves = audited_moves(site)
            figures["moves_in_the_audit_log"] = len(moves)
            tell(figures)
            assert not report.findings, report.summary()
            # Some kill of the command came amid growth: a topic had not grown yet.
            assert not kills or any(HOMES in each[1:] for each in run.rescaling.halfway)
            groups = KeyGroups(HOMES)
            known = {str(groups.of(name)) for name in run.rescaling.moved}
            # A worker that is killed takes the events of its last moments with it.
            assert len(known & {each["object"] for each in moves}) > len(known) // 2
            counts = assert_verified(site).report["counts"]
            tell({"verify": {name: number for name, number in counts.items() if number}})
            assert counts["moves"] >= len(known)
            assert not counts["moves_compacted"]


if ASKED and PLANTED:

    @pytest.mark.timeout(1_800)
    def test_a_schedule_that_is_lost_as_it_moves_is_found(
        kafka: str, idle_stack: Stack, tmp_path: Path, unique: Callable[[str], str]
    ) -> None:
        kills, seed = plays()
        plant = LostRow(tmp_path / "planted")
        with Site(kafka, unique("rescale"), tmp_path, **GIVEN) as site:
            run = Run(site, kills, seed)
            plant.put_into(run.rescaling.workers)
            run.play()
            figures, report = run.figures(idle_stack.kafka.log_dir, PATIENCE_S)
            assert plant.name, "no schedule waited where it moved: the bug has not shown"
            verify = verified(site)
            tell(figures | {"lost": plant.name, "verify": verify.report})
            named = [each for each in report.findings if plant.name in each.sentence]
            assert named, f"nobody misses {plant.name}"
            others = {each.invariant for each in report.findings if each not in named}
            assert not others & {"lost", "doubled", "early", "ended"}, report.summary()
            # Kills leave holes in the changelog, and not one move unjudged.
            assert not verify.report["counts"]["moves_compacted"], verify.report["not_checked"]
            found = [each["found"] for each in verify.report["findings"]]
            assert verify.kinds == ["not_arrived"], found
            assert plant.name in found[0]
