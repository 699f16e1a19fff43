"""In which order the ways of a step are tried: policies, tenants that are held, sweeps, a store."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

import pytest

from belfry.playback.attempts import Attempt, attempts_at, likeliest, refusing, swept
from belfry.playback.logged import LoggedStep
from belfry.playback.played import PlayedPartition
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.playback.ways import Way, let_go, ways_of
from belfry.store.layout.jobs import DONE, JobRow, encode_job, job_key
from belfry.tenants.policy import TenantPolicy
from belfry.wire.record import SourceRecord
from tests.unit.engine.driver import T0
from tests.unit.playback.rows import over, schedule, step
from tests.unit.playback.test_played import born

CHUNK: Final = 100
REQUESTS: Final[list[SourceRecord]] = [(90, 0, None, b"", None), (91, 0, None, b"", None)]


def held(*names: str) -> frozenset[str]:
    return frozenset(names)


def policy(at_ms: int, **fields: Any) -> PolicyAt:
    return PolicyAt(at_ms, "shop", TenantPolicy("shop", **fields))


def tries_at(of_log: LoggedStep, partition: PlayedPartition) -> list[Attempt]:
    assert partition.engine is not None
    return attempts_at(of_log, partition.engine.manifest, None, CHUNK)


def parts(ways: Iterable[Way]) -> list[tuple[int, frozenset[str], list[Attempt]]]:
    """The ways in their order, those together that have the same policies and the same held."""
    kinds = groupby(ways, lambda way: (way.policies, way.held))
    return [(*kind, [each.attempt for each in some]) for kind, some in kinds]


def test_of_who_treats_all_alike_and_holds_nobody_no_attempt_is_made_twice() -> None:
    partition, of_log = born(), step({b"shop/a": over(12_000)})
    tries = tries_at(of_log, partition)
    found = list(ways_of(of_log, partition, CHUNK, set(), REQUESTS))
    assert parts(found) == [(0, held(), [*tries, *swept(of_log, tries)])]
    assert len(set(found)) == len(found)


def test_policies_that_were_written_by_then_count_from_the_newest_to_those_of_before() -> None:
    policies = [policy(at_ms) for at_ms in (T0, T0 + 500, T0 + 1_000, T0 + 1_001)]
    partition = born(policies=policies)
    of_log = step({})._replace(written_ms=T0 + 1_000)
    counts = [count for count, _, _ in parts(ways_of(of_log, partition, CHUNK, set(), REQUESTS))]
    # Of what was in effect with the step before, none goes out of effect again.
    assert counts == [3, 2, 1, 3]


def test_who_is_held_is_guessed_from_what_came_and_what_would_have_come() -> None:
    partition = born(policies=[policy(T0), policy(T0 + 500)])
    assert partition.treatment.reached == 1
    partition.treatment.hold({"a", "b"})
    of_log = step({b"b/x": over(12_000)})._replace(written_ms=T0 + 1_000)
    tries, would_fire = tries_at(of_log, partition), set[str]()
    found = []
    for way in ways_of(of_log, partition, CHUNK, would_fire, REQUESTS):
        found.append(way)
        # The first attempts tell it.
        would_fire |= {"b", "c"}
    few = likeliest(tries)
    others = (held("a"), held("a", "c"), held(), held("c"), held("b"), held("a", "b", "c"))
    assert parts(found) == [
        (2, held("a", "b"), tries),
        (1, held("a", "b"), tries),
        *((count, each, few) for each in others for count in (2, 1)),
        (2, held("a", "b"), list(swept(of_log, tries))),
    ]


def test_a_store_may_have_been_away_where_somebody_has_large_payloads() -> None:
    partition = born(policies=[policy(T0, claim_check_over_bytes=20)])
    of_log = step({})._replace(written_ms=T0)
    tries = tries_at(of_log, partition)
    found = [way.attempt for way in ways_of(of_log, partition, CHUNK, set(), REQUESTS)]
    away = list(refusing(tries, REQUESTS))
    assert found[-len(away) :] == away
    # No request, no payload.
    assert found[: -len(away)] == [
        way.attempt for way in ways_of(of_log, partition, CHUNK, set(), [])
    ]


def test_jobs_work_in_steps_whose_rows_say_so_although_none_was_under_way() -> None:
    partition = born()
    ended = encode_job(JobRow("{}", 5, 1_000, (0, 5), state=DONE, ended_ms=13_000))
    for rows, works in (({job_key("shop", "job"): ended}, True), ({b"shop/a": schedule(1)}, False)):
        found = ways_of(step({**rows}), partition, CHUNK, set(), [])
        assert any(way.attempt.budget is not None for way in found) is works


@pytest.mark.parametrize(
    ("names", "fewer"),
    [
        ((), []),
        (("a",), [held()]),
        (("b", "a"), [held(), held("b"), held("a")]),
    ],
)
def test_those_that_are_held_may_be_let_go_all_at_once_or_one_of_them(
    names: tuple[str, ...], fewer: list[frozenset[str]]
) -> None:
    fit = Way(3, held(*names), Attempt(1_000, 50))
    assert let_go(fit) == [fit._replace(held=each) for each in fewer]


def test_a_way_is_prepared_by_its_policies_and_by_whom_it_holds() -> None:
    treatment = Treatment([policy(1, priority=1), policy(2, priority=2)], "belfry.")
    for count in (2, 1):
        Way(count, held("pay"), Attempt(1_000, 50)).prepare(treatment)
        assert treatment.tenants.of("shop").effective.policy.priority == count
        assert treatment.tenants.of("pay").held
    Way(1, held(), Attempt(1_000, 50)).prepare(treatment)
    assert not treatment.tenants.of("pay").held
