"""A scene: two workers under a load, one of which things happen to.

The *steady* worker is left alone unless a fault is about everybody; the *victim* reaches the broker
through a hop, and is killed, stopped and hurt.  A fault is a function of the scene that strikes,
proves that it struck, and gives the sentence that says how; it raises where it did not strike.
Between two faults both workers share the partitions again, within `CALM_S`.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.evidence import Report, rfc3339
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import PARTITIONS, TENANTS, Load, Shape
from tests.acceptance.harness.rhythm_follow import RhythmFollower
from tests.acceptance.harness.rhythms import RhythmLoad
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.broker import Brokers, in_sync
from tests.chaos.clock import MovedClock

CALM_S: Final = 150.0
READY_S: Final = 90.0
ALL: Final = set(range(PARTITIONS))
# New recurring schedules for each new request of the other load; each fires some twenty times.
RHYTHMS: Final = 1 / 150
# The steady worker and the victim come first.
FIRST_GUEST: Final = 2


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that struck: when, how it showed, and how long until all was calm again."""

    seed: int
    fault: str
    at_ms: int
    seen: str
    seconds: float


class Scene:
    """The workers, their load, and what has struck them so far."""

    def __init__(self, brokers: Brokers, site: Site, shape: Shape, hook: str) -> None:
        """`hook` is the address that webhooks of the recurring schedules go to."""
        self.nodes = brokers.nodes
        self.hop = brokers.hop
        self.site = site
        self.chance = random.Random(shape.seed)
        self.load = Load(site, shape)
        self.rhythms = RhythmLoad(site, shape.per_second * RHYTHMS, shape.seed, hook)
        self.rhythm_follower = RhythmFollower(site, self.rhythms)
        self.strikes: list[Strike] = []
        # Tenants of single faults: not of the load, so the audit of outputs knows nothing of them.
        self.others: list[str] = []
        # Transactions in the changelog that are nobody's of belfry: partition and first offset.
        self.strangers: list[tuple[int, int]] = []
        self.steady = site.worker()
        self.victim = site.worker(BOOTSTRAP_SERVERS=brokers.victims_servers)
        self.clock = MovedClock(self.victim)
        self.log_dir = brokers.log_dir
        self._admin = AdminClient({"bootstrap.servers": brokers.servers, "log_level": 0})
        self._seed = shape.seed
        self._follower: Follower | None = None

    def begin(self) -> None:
        """Start the load and both workers."""
        self.site.schedules_topic()
        self.site.fired_topics(TENANTS)
        self.rhythms.prepare()
        self.load.start()
        self.rhythms.start()
        self.rhythm_follower.start()
        self.steady.start().wait_ready(CALM_S)
        self.victim.start()
        self.wait_calm()
        self._follower = Follower(self.site, self.load.sent, TENANTS, self.log_dir)

    def strike(self, name: str, fault: Fault) -> Strike:
        """Let a fault strike."""
        at_ms, started = now_ms(), time.monotonic()
        try:
            seen = fault(self)
        except BaseException as error:
            error.add_note(f"fault {name}, seed {self._seed}, after {len(self.strikes)} others")
            raise
        struck = Strike(self._seed, name, at_ms, seen, round(time.monotonic() - started, 1))
        self.strikes.append(struck)
        self.follower.read()
        return struck

    def finish(self) -> Report:
        """Stop the load, wait until everything came out, end the workers, and judge the outputs."""
        if not self.runs(self.victim):
            self.victim.start()
        self.load.stop()
        self._wait("every copy to be in sync", self.in_sync)
        report = self.follower.drain(self.load.last_due_ms)
        self.follower.close()
        report.findings += self.rhythm_follower.drain()
        # The victim leaves its stores as a crash does, the other one in order; and who takes over
        # ends what the victim had begun, which the broker would do only after a time-out.
        self.victim.kill()
        self.wait_steady_has_all()
        assert self.steady.stop() == 0, self.steady.tail()
        return report

    # -- what faults ask and do ------------------------------------------------------------------

    def runs(self, worker: Worker) -> bool:
        """Whether a worker's process is there."""
        return worker.child.exit_code() is None

    def in_sync(self) -> bool:
        """Whether each partition of this belfry has all of its copies in sync, and a leader."""
        return in_sync(self._admin, self.site.prefix)

    def rest(self) -> None:
        """Stop the victim in an orderly way, if it runs."""
        if self.runs(self.victim):
            assert self.victim.stop() == 0, self.victim.tail()
        self.wait_steady_has_all()

    def guest(self, number: int) -> Worker:
        """A further worker, not started; asked for again it is the same one."""
        while len(self.site.workers) <= FIRST_GUEST + number:
            self.site.worker()
        return self.site.workers[FIRST_GUEST + number]

    def fired_count(self) -> int:
        """How many have come out by now."""
        self.follower.read()
        return len(self.follower.evidence.fired)

    def wait_fires(self, count: int) -> None:
        """Wait until so many more have come out."""
        before = self.fired_count()
        wait_for(f"{count} fires", lambda: self.fired_count() >= before + count, CALM_S)

    def fired_due(self, due_ms: int) -> int:
        """How many of those that are due at this instant have come out by now."""
        self.follower.read()
        name = rfc3339(due_ms)
        records = self.follower.evidence.fired
        return sum(1 for record in records if record.header("belfry-scheduled-at") == name)

    def dues_since(self, from_ms: int) -> int:
        """How many due instants have passed since then."""
        until_ms = now_ms()
        return sum(1 for one in list(self.load.sent) if from_ms < one.due_ms <= until_ms)

    def log_size(self, worker: Worker) -> int:
        """How long a worker's log is now."""
        return worker.log.stat().st_size if worker.log.exists() else 0

    def said(self, worker: Worker, begin: int = 0) -> str:
        """What a worker's log says from this byte on."""
        return worker.log.read_bytes()[begin:].decode(errors="replace")

    @property
    def follower(self) -> Follower:
        """Who reads what comes out."""
        assert self._follower is not None, "the scene has not begun"
        return self._follower

    def wait_steady_has_all(self) -> None:
        """Wait until the steady worker has and fires everything."""
        self._wait("everything to be the steady worker's", lambda: self._has_all(self.steady))

    def wait_victim_has_all(self) -> None:
        """Wait until the victim has and fires everything."""
        self._wait("everything to be the victim's", lambda: self._has_all(self.victim))

    def gather(self) -> None:
        """Start the victim, if the fault before has left it down, and wait until all is calm."""
        if not self.runs(self.victim):
            self.victim.start()
        self.wait_calm()

    def wait_calm(self) -> None:
        """Wait until both workers share the partitions, and fire; no worker ends by itself."""
        self._wait("both to share the partitions", self._shared)

    def _wait(self, what: str, reached: Callable[[], bool]) -> None:
        wait_for(what, reached, CALM_S)

    def _has_all(self, worker: Worker) -> bool:
        return owned(worker) == ALL and worker.ready

    def _shared(self) -> bool:
        for worker in (self.steady, self.victim):
            assert self.runs(worker), f"a worker ended: {worker.tail()}"
        mine, theirs = owned(self.steady), owned(self.victim)
        parted = mine and theirs and mine | theirs == ALL and not mine & theirs
        return bool(parted) and self.steady.ready and self.victim.ready


Fault = Callable[[Scene], str]


def owned(worker: Worker) -> set[int]:
    """Partitions that a worker says it owns."""
    _, page = worker.get("/metrics")
    found = re.findall(r'^belfry_partition_owned\{partition="(\d+)"\} 1', page, re.MULTILINE)
    return set(map(int, found))


def asleep(worker: Worker) -> bool:
    """Whether the process is stopped."""
    stat = Path(f"/proc/{worker.child.pid}/stat").read_text("utf-8")
    return stat.rpartition(")")[2].split()[0] == "T"


def sleep_through_a_session(scene: Scene) -> None:
    """The victim is stopped: wait until it has lost everything, then wake it up."""
    wait_for("the victim to be stopped", lambda: asleep(scene.victim))
    scene.wait_steady_has_all()
    scene.victim.signal(signal.SIGCONT)
    scene.wait_calm()


def note(strikes: Sequence[Strike]) -> None:
    """Add strikes to the file of records that `CHAOS_RECORD` names, if any."""
    if path := os.environ.get("CHAOS_RECORD"):
        with Path(path).open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(asdict(strike)) + "\n" for strike in strikes)
