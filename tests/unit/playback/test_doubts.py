"""What no log tells: played where rows show it, and else told as a doubt, never as a difference."""

from __future__ import annotations

from random import Random

import pytest

from belfry.engine.job_counts import Budget
from belfry.playback.attempts import sizes_of
from belfry.playback.doubts import (
    HELD_BACK,
    KEYS,
    LAST_FIRES,
    LATE,
    POLICIES,
    SCHEMAS,
    TAKEN_OVER,
)
from belfry.playback.logged import LoggedRow
from belfry.store.layout.manifests import decode_manifest, encode_manifest
from belfry.store.layout.pending import decode_pending, encode_pending
from belfry.store.layout.pending_bytes import is_pending, without_fires
from belfry.store.layout.verdicts import decode_verdict, encode_verdict, is_answer
from belfry.wire import catalogue, framing
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback import test_chaotic as chaotic
from tests.unit.playback.trail import Leaving, play

MUCH = Budget(1_000, 1_000)


@pytest.mark.parametrize("seed", [5, 7])
def test_a_chaotic_run_of_forty_tenants_comes_out_again(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may let go what locks held, of which no row tells, at the instant of its watermark."""
    monkeypatch.setattr(chaotic, "TENANTS", tuple(f"t{number}" for number in range(40)))
    trail = Leaving()
    chaotic.run(trail, Random(seed))
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events == len(trail.events)


def test_sizes_are_those_that_a_pace_comes_to() -> None:
    assert sizes_of(4) == (4,)
    assert {10_000, 5_000, 625, 312, 624, 78, 50, 500, 8_000} <= set(sizes_of(10_000))


def test_a_group_whose_walk_nobody_saw_ends_where_the_log_says_so() -> None:
    """Two groups are done. The walk through one of them met somebody before, and rests there."""
    trail = Leaving()
    trail.ask(T0, schedule_id="a", at=T0 + HOUR, group="g")
    for group in ("g", "h"):
        trail.ask(T0 + 1, schedule_id=f"z-{group}", kind="AFTER_GROUP", after_group=group)
    trail.ask(T0 + 1, schedule_id="b", at=T0 + HOUR, group="h")
    trail.step(T0 + 5)
    # It writes nothing, so there is no transaction.
    assert trail.engine.advance_jobs(T0 + 6, MUCH).empty
    for name in ("a", "b"):
        trail.ask(T0 + 10, schedule_id=name, action="CANCEL")
    trail.step(T0 + 11)
    for _ in range(2):
        assert trail.engine.sweep(T0 + 12, 100).empty
    # The rest of one walk, and none of the other.
    trail.engine.advance_jobs(T0 + 12, Budget(8, 50))
    trail.end(T0 + 12)
    assert sum(each.key == b"demo/z-g" for each in trail.log) == 2
    assert sum(each.key == b"demo/z-h" for each in trail.log) == 1
    trail.engine.advance_jobs(T0 + 20, MUCH)
    trail.end(T0 + 20)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_who_is_held_back_need_not_have_fired() -> None:
    """What is due would be passed over, since the fire before it is awaited: that is a row, too."""
    trail = Leaving()
    rule = {"kind": "EVERY", "interval_ms": 1_000, "overlap": "SKIP", "ack_timeout_ms": HOUR}
    trail.ask(T0, schedule_id="over", **rule)
    trail.step(T0)
    trail.step(T0 + 1_000)
    trail.note(held="its topic is missing")
    trail.step(T0 + 2_000, take=0)
    trail.note(held="")
    trail.step(T0 + 2_010, take=0)
    assert len(trail.events) == 1
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_store_may_go_away_amid_the_requests_of_a_step() -> None:
    for gone in (True, False):
        trail = Leaving()
        trail.set(T0 - HOUR, tenant="demo", claim_check_over_bytes=20, lifecycle="ALL")
        for number in range(4):
            at = T0 + HOUR
            trail.ask(
                T0, schedule_id=f"s{number}", at=at, payload=b"p" * 30, request_id=f"{number}"
            )
        for away in (not gone, gone):
            trail.tenants.store_problem = "it does not answer" if away else ""
            trail.engine.accept(trail.batch(2), T0 + 1)
        trail.end(T0 + 1)
        kept = {each.key for each in trail.log if each.key.startswith(b"demo/")}
        assert kept == ({b"demo/s0", b"demo/s1"} if gone else {b"demo/s2", b"demo/s3"})
        trail.tenants.store_problem = ""
        outcome = play(trail)
        assert outcome.differs is None, outcome.differs


# -- what is left in doubt -------------------------------------------------------------------------


def behind_a_lock() -> Leaving:
    """Something waits behind an ack lock, and later requests come."""
    trail = Leaving()
    for each in range(3):
        more = {"group": "g", "serial": True, "ack_timeout_ms": HOUR}
        trail.ask(T0, schedule_id=f"g{each}", at=T0 + 100 + each, **more)
    trail.step(T0 + 5)
    trail.run(T0 + 200)
    trail.ask(T0 + 300, schedule_id="later", at=T0 + HOUR)
    trail.step(T0 + 300)
    return trail


def altered(trail: Leaving, name: bytes) -> list[LoggedRow]:
    """The log with another version in each pending row of a schedule."""
    found = []
    for each in trail.log:
        row = each.row
        if each.key == name and row is not None and is_pending(row):
            row = encode_pending(decode_pending(row)._replace(version=7))
        found.append(each._replace(row=row))
    return found


def with_held_row(trail: Leaving, name: bytes) -> list[LoggedRow]:
    """The log with another row of what a lock holds back, in the step that brings `name`."""
    at = next(n for n, each in enumerate(trail.log) if each.key == name)
    held = next(each.row for each in altered(trail, b"demo/g2") if each.key == b"demo/g2")
    return [*trail.log[:at], trail.log[at]._replace(key=b"demo/g2", row=held), *trail.log[at:]]


def test_what_differs_while_something_is_held_back_cannot_be_judged() -> None:
    trail = behind_a_lock()
    found = play(trail, with_held_row(trail, b"demo/later")).differs
    assert found is not None
    assert HELD_BACK in found.doubt


def test_a_row_that_nobody_asked_for_differs_whatever_is_held_back() -> None:
    trail = behind_a_lock()
    at = next(n for n, each in enumerate(trail.log) if each.key == b"demo/later")
    forged = trail.log[at]._replace(key=b"demo/theirs")
    found = play(trail, [*trail.log[:at], forged, *trail.log[at:]]).differs
    assert found is not None
    assert (found.name, found.doubt) == ("demo/theirs", "")


def test_what_differs_where_nothing_is_held_back_is_judged() -> None:
    trail = Leaving()
    trail.ask(T0, schedule_id="later", at=T0 + HOUR)
    trail.step(T0 + 5)
    found = play(trail, altered(trail, b"demo/later")).differs
    assert found is not None
    assert not found.doubt


def test_a_step_that_left_out_what_was_due_cannot_be_judged() -> None:
    trail = Leaving()
    for each in range(3):
        trail.ask(T0, schedule_id=f"s{each}", at=T0 + 100)
    trail.step(T0 + 5)
    trail.step(T0 + 100, take=0)
    last = trail.log[-1]
    assert last.row is not None
    fewer = encode_manifest(decode_manifest(last.row)._replace(fired=1))
    found = play(trail, [*trail.log[:-1], last._replace(row=fewer)]).differs
    assert found is not None
    assert found.doubt == LATE


def test_an_owner_that_took_over_amid_a_backlog_is_in_doubt_to_its_end() -> None:
    trail = behind_a_lock()
    trail.own(T0 + 400)
    trail.ask(T0 + 500, schedule_id="last", at=T0 + HOUR)
    trail.step(T0 + 500)
    found = play(trail, with_held_row(trail, b"demo/last")).differs
    assert found is not None
    assert TAKEN_OVER in found.doubt


def test_policies_that_are_gone_and_keys_are_doubts() -> None:
    trail = Leaving()
    trail.ask(T0, schedule_id="later", at=T0 + HOUR)
    trail.step(T0 + 5)
    found = play(trail, altered(trail, b"demo/later"), compacted=True).differs
    assert found is not None
    assert found.doubt == POLICIES
    trail.set(T0 - HOUR, tenant="demo", payload_key_ref="env:KEY")
    found = play(trail, altered(trail, b"demo/later")).differs
    assert found is not None
    assert found.doubt == KEYS


def test_what_a_registry_said_of_a_request_cannot_be_judged() -> None:
    """The worker did not get the schema, or it got one that is gone by now."""
    trail = Leaving()
    body = catalogue.encode(
        "ScheduleRequest", {"tenant": "demo", "schedule_id": "a", "at": T0 + HOUR}
    )
    trail.send(framing.single_object("ScheduleRequest") + body)
    trail.step(T0 + 5)
    trail.source[0] = (*trail.source[0][:3], framing.prefix(7) + body, None)
    found = play(trail).differs
    assert found is not None
    assert found.doubt == SCHEMAS


def test_another_verdict_beside_a_request_that_names_a_schema_cannot_be_judged() -> None:
    trail = Leaving()
    trail.send(framing.prefix(7) + b"by a schema that nobody knows")
    trail.ask(T0 + 1, schedule_id="a", at=T0 + HOUR, request_id="r")
    trail.step(T0 + 5)
    at = next(n for n, each in enumerate(trail.log) if each.row and is_answer(each.row))
    answer = trail.log[at].row or b""
    other = trail.log[at]._replace(row=encode_verdict(decode_verdict(answer)._replace(version=2)))
    found = play(trail, [*trail.log[:at], other, *trail.log[at + 1 :]]).differs
    assert found is not None
    assert found.doubt == SCHEMAS


def test_how_many_last_fires_a_worker_keeps_cannot_be_judged() -> None:
    trail = Leaving()
    trail.ask(T0, schedule_id="c", kind="EVERY", interval_ms=1_000)
    trail.step(T0 + 5)
    trail.step(T0 + 1_000)
    last = max(n for n, each in enumerate(trail.log) if each.key == b"demo/c")
    bare = without_fires(trail.log[last].row or b"")
    log = [*trail.log[:last], trail.log[last]._replace(row=bare), *trail.log[last + 1 :]]
    found = play(trail, log).differs
    assert found is not None
    assert found.doubt == LAST_FIRES
