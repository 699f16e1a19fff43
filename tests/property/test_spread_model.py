"""A tenant's spread changes while owners learn of it at moments of their own.

Whatever the order: no request is refused, each has one verdict under the place where it was
written, and a schedule lives on one partition at most, so that it fires once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.tenants.policy import TenantPolicy
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.engine.driver import T0
from tests.unit.engine.test_spread import PARTITIONS, Ring, policy

POLICIES = (policy(1), policy(4, 1), policy(7, 1, 4), policy(3, 1, 4, 7))
IDS = ("a", "b", "c")


class Learn(NamedTuple):
    """The owner of a partition learns of the next policy, if there is one."""

    partition: int


class Ask(NamedTuple):
    """A request comes in on a partition."""

    partition: int
    schedule_id: str
    action: str


class Step(NamedTuple):
    """Each partition makes a step."""


PARTITION = st.integers(0, PARTITIONS - 1)
EVENTS = st.one_of(
    st.builds(Learn, PARTITION),
    st.builds(
        Ask, PARTITION, st.sampled_from(IDS), st.sampled_from(["UPSERT", "UPSERT", "CANCEL"])
    ),
    st.builds(Step),
)


def played(
    events: list[Any], skews_ms: list[int]
) -> tuple[Ring, list[LifecycleEvent], dict[str, int]]:
    """A ring after these events, when all have learnt; verdicts, and where each id came in."""
    ring, told, asked = Ring(skews_ms), list[LifecycleEvent](), dict[str, int]()
    ring.follow(POLICIES[0])
    learnt = [0] * PARTITIONS
    for number, event in enumerate(events):
        if isinstance(event, Ask):
            request_id = f"r{number}"
            asked[request_id] = event.partition
            more = {"at": T0 + 10 + number} if event.action == "UPSERT" else {}
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


@settings(max_examples=300)
@given(
    st.lists(EVENTS, max_size=40),
    st.lists(st.integers(-5_000, 5_000), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_no_moment_of_a_change_refuses_or_doubles(events: list[Any], skews_ms: list[int]) -> None:
    ring, told, asked = played(events, skews_ms)
    assert Counter(each.request_id for each in told) == Counter(asked.keys())
    assert {each.request_id: each.source_partition for each in told} == asked
    outcomes = Counter(str(each.outcome) for each in told)
    assert "REJECTED" not in outcomes
    assert ring.pending() == outcomes["ACCEPTED"] - outcomes["CANCELLED"]
    fired = ring.fire(T0 + 1_000)
    assert len(fired) == len(set(fired)) == outcomes["ACCEPTED"] - outcomes["CANCELLED"]
