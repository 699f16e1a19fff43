"""Workers share the partitions, and the death of one loses nothing and doubles nothing."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

EVENTS = 2_000
TENANTS = tuple(f"t{number}" for number in range(12))


def owned(worker: Worker) -> set[int]:
    """Partitions that a worker says it owns."""
    _, page = worker.get("/metrics")
    found = re.findall(r'^belfry_partition_owned\{partition="(\d+)"\} 1', page, re.MULTILINE)
    return set(map(int, found))


def shared(one: Worker, other: Worker) -> bool:
    """Whether each has some of the four partitions, and both together have all."""
    mine, theirs = owned(one), owned(other)
    return bool(mine and theirs) and mine | theirs == set(range(4)) and not mine & theirs


def test_the_death_of_one_of_two(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> None:
    chance = random.Random(2)
    with Site(kafka, unique("two"), tmp_path) as site:
        site.fired_topics(TENANTS)
        one = site.worker().start().wait_ready()
        other = site.worker().start()
        wait_for("both to own partitions", lambda: shared(one, other), 30)
        first_ms = now_ms() + 1_000
        due: dict[bytes, int] = {}
        for number in range(EVENTS):
            tenant = chance.choice(TENANTS)
            due[b"%d" % number] = due_ms = first_ms + chance.randrange(6_000)
            value = request(tenant, f"s{number}", at=due_ms, payload=b"%d" % number)
            site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
        site.producer.flush()
        wait_for("fires to begin", lambda: len(site.fired(*TENANTS)) > EVENTS // 10)
        one.kill()
        fired = wait_for(
            "all of them",
            lambda: found if len(found := site.fired(*TENANTS)) >= EVENTS else [],
            40,
        )
        assert sorted(record.value or b"" for record in fired) == sorted(due)
        late_ms = [record.timestamp_ms - due[record.value or b""] for record in fired]
        assert min(late_ms) >= 0
        wait_for("all partitions to be the other's", lambda: owned(other) == set(range(4)))
        assert other.stop() == 0


def test_who_was_asleep_commits_nothing_when_it_wakes(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """A worker stops before a commit, another takes over; then the first goes on where it was."""
    with Site(kafka, unique("asleep"), tmp_path) as site:
        sleeper = site.worker().start("S5:stop:40").wait_ready()
        first_ms = now_ms() + 1_000
        for number in range(EVENTS):
            tenant = TENANTS[number % len(TENANTS)]
            value = request(tenant, f"s{number}", at=first_ms + 2 * number, payload=b"%d" % number)
            site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
        site.producer.flush()
        wait_for("the worker to fall asleep", lambda: asleep(sleeper))
        other = site.worker().start()
        wait_for("all partitions to be the other's", lambda: owned(other) == set(range(4)), 30)
        wait_for("all of them", lambda: len(site.fired(*TENANTS)) >= EVENTS, 40)
        sleeper.signal(signal.SIGCONT)
        wait_for("both to own partitions", lambda: shared(sleeper, other), 40)
        fired = site.fired(*TENANTS)
        assert len(fired) == len({record.value for record in fired}) == EVENTS
        assert sleeper.stop() == 0


def asleep(worker: Worker) -> bool:
    """Whether the process is stopped."""
    state = Path(f"/proc/{worker.child.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    return state == "T"


def test_a_partition_changes_hands_twice_without_a_trace(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """A second worker comes and goes while events fire: nobody notices."""
    with Site(kafka, unique("guest"), tmp_path) as site:
        one = site.worker().start().wait_ready()
        first_ms = now_ms() + 1_000
        for number in range(EVENTS):
            tenant = TENANTS[number % len(TENANTS)]
            value = request(tenant, f"s{number}", at=first_ms + 4 * number, payload=b"%d" % number)
            site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
        site.producer.flush()
        guest = site.worker().start()
        wait_for("both to own partitions", lambda: shared(one, guest), 30)
        assert guest.stop() == 0
        fired = wait_for(
            "all of them", lambda: f if len(f := site.fired(*TENANTS)) >= EVENTS else [], 40
        )
        assert len(fired) == len({record.value for record in fired}) == EVENTS
