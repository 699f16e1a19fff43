"""How many homes have been asked, is what a worker says: a stranger's word begins nothing twice.

A tenant of several homes, of which the first one has a schedule:

    spread 1, then 8     `old` waits in its first home, and its route leads on to another one
    forged               an upsert of `old` in that other home: "the first one has been asked"
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest

from belfry.schedules.identity import Homes
from belfry.store.layout.records import encode_text
from belfry.tenants.policy import TenantPolicy
from belfry.wire.origins import ORIGIN_SIGNATURE, vouched
from belfry.wire.record import ASKED, Headers, Origin, origin_headers
from belfry.wire.worker_keys import Keys
from tests.unit.engine.driver import HOUR, T0, Driver, request
from tests.unit.engine.moving_ring import KEYS, MovingRing
from tests.unit.engine.test_jobs import finish, job
from tests.unit.engine.test_move_edges import asked_for, away, given
from tests.unit.engine.test_spread import PARTITIONS, Ring, policy

HOMES: Final = Homes(PARTITIONS)
FIRST: Final = HOMES.of("demo")
OLD: Final = next(
    name for name in map("old{}".format, range(99)) if len(HOMES.route("demo", name, (1,), 8)) == 2
)
LAST: Final = HOMES.route("demo", OLD, (1,), 8)[1]
SAID: Final = Origin("belfry.schedules", FIRST, 3, T0 - 5, rerouted=False)
STRANGERS: Final = (b"a secret of somebody else",)
FORMS: Final[dict[str, Headers]] = {
    "asked alone": [(ASKED, b"1")],
    "an origin": origin_headers(SAID, 1),
    "signed with another secret": vouched(
        STRANGERS, None, request(schedule_id=OLD, at=T0 + 9), origin_headers(SAID, 1)
    ),
    "signed for another value": vouched(KEYS, None, b"", origin_headers(SAID, 1)),
    "signed without it": [
        *vouched(KEYS, None, request(schedule_id=OLD, at=T0 + 9), origin_headers(SAID)),
        (ASKED, b"1"),
    ],
    "the end of a signature": [*origin_headers(SAID, 1), (ORIGIN_SIGNATURE, b"")],
}


def spread_ring(keys: Keys = KEYS) -> Ring:
    """A tenant of several homes, with a schedule that began in the first one."""
    ring = Ring()
    for driver in ring.drivers:
        driver.place = driver.place._replace(origin_keys=keys)
        driver.start(driver.rows)
    ring.follow(policy(1))
    ring.ask(0, schedule_id=OLD, at=T0 + 5)
    ring.settle()
    ring.follow(policy(8, 1))
    return ring


def forge(driver: Driver, headers: Headers, **fields: Any) -> None:
    driver.send(request(**fields), None, headers, T0)


@pytest.mark.parametrize("form", FORMS)
def test_a_schedule_does_not_begin_in_a_second_home(form: str) -> None:
    ring = spread_ring()
    forge(ring.drivers[LAST], FORMS[form], schedule_id=OLD, at=T0 + 9)
    assert ring.settle() == [f"UPDATED {OLD}"]
    assert ring.pending() == 1
    assert ring.fire(T0 + 100) == [OLD]


def test_without_a_secret_the_headers_are_believed_as_ever() -> None:
    ring = spread_ring(())
    forge(ring.drivers[LAST], FORMS["an origin"], schedule_id=OLD, at=T0 + 9)
    assert ring.settle() == [f"ACCEPTED {OLD}"]
    assert ring.pending() == 2


def test_a_request_that_asks_in_the_wrong_home_is_not_counted_as_one_that_began_anew() -> None:
    """A worker's word that nobody has been asked is no other than none."""
    ring = spread_ring()
    forge(ring.drivers[FIRST], [(ASKED, b"1")], schedule_id="new" + OLD, at=T0 + 9)
    (stray,) = ring.drivers[FIRST].step(T0, fire=False).effects.rerouted
    assert dict(stray.headers)[ASKED] == b"1"
    assert "belfry-origin-retries" not in dict(stray.headers)


def test_a_job_that_is_sent_on_without_progress_is_counted() -> None:
    """Else two owners of different policies would send it to and fro for ever."""
    ring = spread_ring()
    fields: dict[str, Any] = {"action": "BULK", "schedule_id": "job", "bulk": job("CANCEL")}
    signed = vouched(KEYS, None, request(**fields), origin_headers(SAID, 1))
    forge(ring.drivers[FIRST], signed, **fields)
    (stray,) = ring.drivers[FIRST].step(T0, fire=False).effects.rerouted
    assert stray.partition == HOMES.all_of("demo", (1, 8))[1]
    assert dict(stray.headers)[ASKED] == b"1"
    assert dict(stray.headers)["belfry-origin-retries"] == b"1"


@pytest.mark.parametrize("action", ["BULK", "CALENDAR"])
def test_what_is_for_all_homes_has_its_verdict_and_reaches_them_all(action: str) -> None:
    ring = spread_ring()
    names = [f"s{number}" for number in range(20)]
    for name in names:
        ring.ask(0, schedule_id=name, at=T0 + HOUR)
    ring.settle()
    ring.follow(TenantPolicy("demo", lifecycle="FAILURES", spread=8, former_spreads=(1,)))
    said: dict[str, Any] = {"bulk": job("CANCEL")}
    if action == "CALENDAR":
        said = {"days_off": json.dumps({"days": ["2027-12-24"]})}
    last = HOMES.all_of("demo", (1, 8))[-1]
    forge(
        ring.drivers[last], [(ASKED, b"9")],
        action=action, schedule_id="all", request_id="r", **said,
    )  # fmt: skip
    assert ring.settle() == ["ACCEPTED all"]
    done = Counter(each for driver in ring.drivers for each in finish(driver))
    cancelled = dict.fromkeys([OLD, *names], 1) if action == "BULK" else {}
    assert done == {f"CANCELLED {name}": 1 for name in cancelled}


def test_a_request_that_cannot_be_carried_out_has_a_verdict() -> None:
    ring = spread_ring()
    more = {"action": "BULK", "schedule_id": "all", "bulk": "no job", "request_id": "r"}
    forge(ring.drivers[LAST], [(ASKED, b"9")], **more)
    assert ring.settle() == ["REJECTED all"]


def test_a_job_that_waited_for_its_group_is_refused_though_it_says_that_it_has_begun() -> None:
    ring = MovingRing()
    home = ring.home("demo")
    ring.ask("demo", schedule_id="s", at=T0 + HOUR)
    ring.settle()
    away(ring)
    source = asked_for(ring, home)
    forge(
        ring.drivers[home], [(ASKED, b"1")],
        action="BULK", schedule_id="job", bulk=job("CANCEL"), request_id="r",
    )  # fmt: skip
    ring.step(home)
    given(ring, source)
    ring.settle()
    assert ring.refused == ["tenant_held"]
    assert sum(ring.pending()) == 1


@pytest.mark.parametrize("waits", [False, True])
def test_what_is_handed_on_to_where_a_group_lies_says_no_more_than_a_worker_knows(
    waits: bool,
) -> None:
    ring = MovingRing()
    home = ring.home("demo")
    if waits:
        source = asked_for(ring, (home + 1) % 3)
    else:
        away(ring)
    forge(ring.drivers[home], [(ASKED, b"1")], schedule_id="a", at=T0 + HOUR)
    if waits:
        ring.step(home)
        given(ring, source)
    ring.settle()
    sent = [dict(each[4] or []) for driver in ring.drivers for each in driver.source]
    handed = [each for each in sent if "belfry-origin-group" in each]
    assert len(handed) == 1
    assert ASKED not in handed[0]
    assert ring.outcomes() == ["ACCEPTED a"]


@pytest.mark.parametrize(("until", "begins_twice"), [(0, False), (1, True)])
def test_what_was_sent_on_before_there_was_a_secret_counts_up_to_the_end_of_then(
    until: int,
    begins_twice: bool,
) -> None:
    """Else a bulk job under way would begin once more, and requests would change their order."""
    ring = spread_ring()
    statement = encode_text(json.dumps({"unsigned_until": ["input", until]}))
    last = ring.drivers[LAST]
    last.engine.claim(None, None, statement)
    last.end(T0)
    for _ in range(2):
        forge(last, origin_headers(SAID, 1), schedule_id=OLD, at=T0 + 9)
    first, second = ring.settle()
    assert first == f"{'ACCEPTED' if begins_twice else 'UPDATED'} {OLD}"
    # The second one lies behind that end, and goes the whole way.
    assert second == f"{'UPDATED' if begins_twice else 'UNCHANGED'} {OLD}"
    assert ring.pending() == 1 + begins_twice


@pytest.mark.parametrize("told", [True, False])
def test_what_is_under_way_when_workers_get_a_secret_is_done_once(
    told: bool,
) -> None:
    """The statement of the new owners tells where the input ended; without it there is no bound."""
    ring = spread_ring(())
    ring.follow(TenantPolicy("demo", lifecycle="FAILURES", spread=8, former_spreads=(1,)))
    ring.ask(FIRST, action="BULK", schedule_id="job", bulk=job("CANCEL"), request_id="r")
    first = ring.drivers[FIRST].step(T0, fire=False)
    assert first.outcomes == ["ACCEPTED"]
    for stray in first.effects.rerouted:
        ring.drivers[stray.partition].send(stray.value, stray.key, stray.headers, T0)
    for driver in ring.drivers:
        driver.place = driver.place._replace(origin_keys=KEYS)
        driver.start(driver.rows)
        said = {"unsigned_until": ["input", len(driver.source)]} if told else {}
        driver.engine.claim(None, None, encode_text(json.dumps(said)))
        driver.end(T0)
    assert ring.settle() == ([] if told else ["DUPLICATE job"])
    done = Counter(each for driver in ring.drivers for each in finish(driver))
    assert done == {f"CANCELLED {OLD}": 1}
