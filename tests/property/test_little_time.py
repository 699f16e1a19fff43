"""However little time its steps have, a partition fires the same events as one that is not hurried.

No clock decides when the time is up, but a count of questions, drawn anew for each step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from belfry.engine.step import never
from tests.unit.engine.driver import FIRED, HOUR, T0, Driver

LATE: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
# Late by nothing, by a little, by much.
INSTANTS: Final = (T0 + 400, T0 + 3_000, T0 + 3_001, T0 + 90_000, T0 + HOUR)
MOST_STEPS: Final = 2_000
Asked = dict[str, Any]


def once(random: Random) -> Asked:
    """A schedule that fires once; many share an instant."""
    return {"at": T0 + random.choice([1, 1, 2, 300, 2_500, random.randrange(1, 80_000)])}


def recurring(random: Random) -> Asked:
    """A schedule that fires several times, perhaps with a jitter larger than its interval."""
    return {
        "kind": "EVERY",
        "interval_ms": random.choice([10, 70, 900, 20_000]),
        "start_at": T0 + random.randrange(1, 3_000),
        "max_fires": random.choice([1, 4, 9]),
        "end_at": T0 + 80_000,
        "jitter_ms": random.choice([None, 5, 90, 2_000]),
        "misfire": random.choice(LATE),
        "max_lateness_ms": random.choice([0, 30, 100_000]),
    }


def in_group(random: Random) -> Asked:
    """One of a group, which may wait for the acknowledgements of those before it."""
    if random.random() < 0.3:
        # What catches up has no place among its group.
        asked = recurring(random) | {"misfire": "FIRE_ONCE"}
    else:
        asked = once(random)
        if random.random() < 0.3:
            asked |= {"serial": True, "ack_timeout_ms": 50}
    return asked | {"group": random.choice("gh")}


def prior(random: Random) -> Asked:
    """One that has a priority of its own among its tenant's."""
    kind = random.choice([once, recurring])
    return kind(random) | {"priority": random.choice([-5, 0, 7])}


# By the first letter of a tenant's name: what it asks for.
SORTS: Final[dict[str, Callable[[Random], Asked]]] = {
    "o": once,
    "r": recurring,
    "g": in_group,
    "p": prior,
    "q": once,
}
# Those of a tenant leave in due order.
IN_ORDER: Final = "oq"


def asked_for(seed: int, number: int) -> Driver:
    """A partition that has taken so many requests in, of few tenants or of a crowd."""
    random, driver = Random(seed), Driver()
    tenants = random.choice([1, 2, 40])
    for name in "qp":
        driver.apply(f"{name}0", max_fires_per_second=100_000)
    for each in range(number):
        sort = random.choice([*SORTS])
        tenant = f"{sort}{random.randrange(tenants)}"
        driver.ask(tenant=tenant, schedule_id=f"s{each}", **SORTS[sort](random))
    step = driver.step(T0)
    assert not step.codes
    return driver


def after(questions: int) -> Callable[[], bool]:
    """Says that the time is up once it was asked more often."""
    left = [questions]

    def is_up() -> bool:
        left[0] -= 1
        return left[0] < 0

    return is_up


class Played(dict[str, list[tuple[str, str, str]]]):
    """By tenant, the fires in their order: schedule, group and fire id."""

    def __init__(self, driver: Driver, time_of: Callable[[], Callable[[], bool]]) -> None:
        super().__init__()
        self.steps = 0
        for now_ms in INSTANTS:
            held = now_ms in INSTANTS[1:3]
            # What was held back leaves from backlogs.
            for tenant in ("o0", "r0", "p0", "g0"):
                driver.tenants.hold(tenant, "its topic is missing" if held else "")
            self._run(driver, now_ms, time_of)
        # By now all is due, and what waits for a rate or an ACK leaves in time.
        while driver.engine.pending:
            self.steps += 1
            assert self.steps < MOST_STEPS, "some never fire"
            now_ms += 100
            self._run(driver, now_ms, time_of)

    def _run(self, driver: Driver, now_ms: int, time_of: Callable[[], Callable[[], bool]]) -> None:
        while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
            self.steps += 1
            assert self.steps < MOST_STEPS, "its steps come to no end"
            effects = driver.engine.fire_due(now_ms, 10_000, time_of())
            if effects.empty:
                # What is left waits for the next instant.
                break
            for topic, _, group, _, headers in effects.fired:
                told = {name: (value or b"").decode() for name, value in headers}
                fire = told["belfry-schedule-id"], str(group), told["belfry-fire-id"]
                self.setdefault(topic.removeprefix(FIRED), []).append(fire)
            driver.end(now_ms)

    def check(self, other: Played) -> None:
        """The other has fired the same, in the same order where order is kept."""
        assert self.keys() == other.keys()
        for tenant, fires in self.items():
            assert Counter(fires) == Counter(other[tenant])
            assert _apart(fires, 0) == _apart(other[tenant], 0)
            if tenant[0] in IN_ORDER:
                assert fires == other[tenant]
            if tenant[0] == "g":
                assert _apart(fires, 1) == _apart(other[tenant], 1)


def _apart(fires: list[tuple[str, str, str]], by: int) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for fire in fires:
        found[fire[by]].append(fire[2])
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [0, 4], ids=["none", "little"])
def test_the_same_events_fire_however_little_time_there_is(seed: int, most: int) -> None:
    number, random = 400 if seed else 2_000, Random(seed)
    free = Played(asked_for(seed, number), lambda: never)
    hurried = Played(asked_for(seed, number), lambda: after(random.randint(0, most)))
    assert hurried.steps > free.steps
    free.check(hurried)
