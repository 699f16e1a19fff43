"""A tenant's spread changes while owners learn of it at moments of their own.

Whatever the order: no request is refused, each has one verdict under the place where it was
written, and a schedule lives on one partition at most, so that it fires once.  Where workers share
a secret, the same holds though strangers say how many homes have been asked.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.engine.reports import Reports
from belfry.tenants.policy import TenantPolicy
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.record import ASKED, Headers, Origin, SourceRecord, asked_of, origin_headers
from belfry.wire.worker_keys import Keys
from tests.unit.engine.driver import T0, request
from tests.unit.engine.test_spread import PARTITIONS, Ring, policy

POLICIES = (policy(1), policy(4, 1), policy(7, 1, 4), policy(3, 1, 4, 7))
IDS = ("a", "b", "c")


class Learn(NamedTuple):
    """The owner of a partition learns of the next policy, if there is one."""

    partition: int


class Ask(NamedTuple):
    """A request comes in on a partition; a stranger may say that so many homes were asked."""

    partition: int
    schedule_id: str
    action: str
    said: int | None = None
    whole: bool = False


class Step(NamedTuple):
    """Each partition makes a step."""


PARTITION = st.integers(0, PARTITIONS - 1)
ASKS = PARTITION, st.sampled_from(IDS), st.sampled_from(["UPSERT", "UPSERT", "CANCEL"])
ASK = st.builds(Ask, *ASKS, st.none(), st.just(value=False))
EVENTS = st.one_of(st.builds(Learn, PARTITION), ASK, st.builds(Step))
FORGED = st.builds(Ask, *ASKS, st.integers(0, len(POLICIES)), st.booleans())
SKEWS = st.lists(st.integers(-5_000, 5_000), min_size=PARTITIONS, max_size=PARTITIONS)
KEYS: Keys = (b"a secret of this ring",)


def forge(ring: Ring, event: Ask, **fields: Any) -> None:
    """A request with headers that only workers should write, some of them or all."""
    headers: Headers = [(ASKED, b"%d" % (event.said or 0))]
    if event.whole:
        headers = origin_headers(Origin("elsewhere", 1, 7, T0 - 9, rerouted=False), event.said)
    fields |= {"schedule_id": event.schedule_id, "action": event.action}
    appended_ms = T0 + ring.skews_ms[event.partition]
    ring.drivers[event.partition].send(request(**fields), None, headers, appended_ms)


def played(
    events: list[Any], skews_ms: list[int], keys: Keys = ()
) -> tuple[Ring, list[LifecycleEvent], dict[str, int]]:
    """A ring after these events, when all have learnt; verdicts, and where each id came in."""
    ring, told, asked = Ring(skews_ms), list[LifecycleEvent](), dict[str, int]()
    for driver in ring.drivers:
        driver.place = driver.place._replace(origin_keys=keys)
        driver.start(driver.rows)
    ring.follow(POLICIES[0])
    learnt = [0] * PARTITIONS
    for number, event in enumerate(events):
        if isinstance(event, Ask):
            request_id = f"r{number}"
            asked[request_id] = event.partition
            more = {"at": T0 + 10 + number} if event.action == "UPSERT" else {}
            if event.said is not None:
                forge(ring, event, request_id=request_id, **more)
                continue
            ring.ask(
                event.partition, schedule_id=event.schedule_id, action=event.action,
                request_id=request_id, **more,
            )  # fmt: skip
        elif isinstance(event, Step):
            ring.step(told)
        else:
            # A policy is the next one of the topic: nobody is ahead by more than one.
            newest = min(min(learnt) + 1, len(POLICIES) - 1)
            learnt[event.partition] = max(learnt[event.partition], newest)
            ring.follow(POLICIES[learnt[event.partition]], event.partition)
    last: TenantPolicy = POLICIES[max(learnt)]
    ring.follow(last)
    while ring.step(told):
        pass
    return ring, told, asked


def check(ring: Ring, told: list[LifecycleEvent], asked: dict[str, int]) -> None:
    """Each has one verdict, and each schedule that waits fires once."""
    assert Counter(each.request_id for each in told) == Counter(asked.keys())
    assert {each.request_id: each.source_partition for each in told} == asked
    outcomes = Counter(str(each.outcome) for each in told)
    assert "REJECTED" not in outcomes
    assert ring.pending() == outcomes["ACCEPTED"] - outcomes["CANCELLED"]
    fired = ring.fire(T0 + 1_000)
    assert len(fired) == len(set(fired)) == outcomes["ACCEPTED"] - outcomes["CANCELLED"]


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=40), SKEWS)
def test_no_moment_of_a_change_refuses_or_doubles(events: list[Any], skews_ms: list[int]) -> None:
    check(*played(events, skews_ms))


@settings(max_examples=300)
@given(st.lists(st.one_of(EVENTS, FORGED), max_size=40), SKEWS)
def test_no_word_of_a_stranger_refuses_or_doubles(events: list[Any], skews_ms: list[int]) -> None:
    check(*played(events, skews_ms, KEYS))


@settings(max_examples=150)
@given(st.lists(EVENTS, max_size=40), SKEWS, st.sets(PARTITION))
def test_owners_of_the_release_before_are_no_less_true(
    events: list[Any], skews_ms: list[int], older: set[int]
) -> None:
    """That release signed the same, and believed what nobody had signed."""
    newer = Reports.asked

    def asked(reports: Reports, record: SourceRecord) -> int:
        before = reports._place.partition in older
        return asked_of(record) if before else newer(reports, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reports, "asked", asked)
        check(*played(events, skews_ms, KEYS))
