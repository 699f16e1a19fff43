"""Faults of an engine amid backlogs, locks and take-overs: a replay finds those of rows and events.

A playback that knows too little of how steps may have been is in doubt, and accuses nobody.
"""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest

from belfry.playback import branches, player
from belfry.playback.comparing import StepDifference
from belfry.playback.doubts import GIVEN_UP, HELD_BACK, LATE, TAKEN_OVER
from belfry.playback.ways import ways_of
from belfry.store.layout.manifests import decode_manifest, encode_manifest
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.pending_bytes import next_record
from belfry.store.layout.records import encode_fired_marker
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback import test_chaotic as chaotic
from tests.unit.playback.test_doubts import altered, behind_a_lock, with_held_row
from tests.unit.playback.trail import Leaving, is_manifest, play


def every(number: int, real: Any, wrong: Any) -> Any:
    """A function that is wrong each so many calls."""
    calls = 0

    def either(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return wrong(*given) if calls % number == 0 else real(*given)

    return either


def chaotic_trail(seed: int, monkeypatch: pytest.MonkeyPatch) -> Leaving:
    """What a run leaves behind, with backlogs and owners; what was patched is whole again."""
    trail = Leaving()
    chaotic.run(trail, Random(seed))
    monkeypatch.undo()
    return trail


def judged(found: StepDifference | None) -> StepDifference:
    """A difference that is in no doubt."""
    assert found is not None
    assert not found.doubt
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_end_that_is_counted_wrong_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = encode_fired_marker
    one_more = every(200, real, lambda *given: real(*given[:-1], given[-1] + 1))
    monkeypatch.setattr("belfry.engine.fires.encode_fired_marker", one_more)
    found = judged(play(chaotic_trail(seed, monkeypatch)).differs)
    assert "marker" in found.logged


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_next_fire_at_a_wrong_instant_is_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = next_record
    later = every(200, real, lambda record, due_ms, *more: real(record, due_ms + 1, *more))
    monkeypatch.setattr("belfry.engine.fires.next_record", later)
    found = judged(play(chaotic_trail(seed, monkeypatch)).differs)
    assert "pending" in found.logged


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_request_that_is_written_wrong_is_found(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = encode_pending
    wrong = every(50, real, lambda row, *more: real(row._replace(version=9), *more))
    monkeypatch.setattr("belfry.engine.transitions.encode_pending", wrong)
    found = judged(play(chaotic_trail(seed, monkeypatch)).differs)
    assert "pending" in found.logged


def test_an_event_with_other_bytes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    trail = chaotic_trail(1, monkeypatch)
    identity, (topic, key, at_ms, value, headers) = trail.events[-500]
    trail.events[-500] = identity, (topic, key, at_ms, (value or b"") + b"!", headers)
    assert judged(play(trail).differs).what == "event"


def test_a_row_that_was_asked_for_differs_whatever_is_held_back() -> None:
    trail = behind_a_lock()
    found = judged(play(trail, altered(trail, b"demo/later")).differs)
    assert found.name == "demo/later"


def test_a_row_that_was_asked_for_differs_whatever_else_there_is_to_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An owner took over, ways were given up, something waits, and fewer fired than were due."""
    monkeypatch.setattr(branches, "MOST_BRANCHES", 1)
    trail = behind_a_lock()
    trail.own(T0 + 400)
    for each in range(3):
        trail.ask(T0 + 401, schedule_id=f"s{each}", at=T0 + 450)
    trail.step(T0 + 401)
    trail.ask(T0 + 500, schedule_id="last", at=T0 + HOUR)
    assert len(trail.step(T0 + 500).ids) == 3
    last = trail.log[-1]
    assert last.row is not None
    fewer = last._replace(row=encode_manifest(decode_manifest(last.row)._replace(fired=1)))
    doubted = play(trail, [*with_held_row(trail, b"demo/last")[:-1], fewer]).differs
    assert doubted is not None
    assert doubted.doubt.split("; ") == [GIVEN_UP, TAKEN_OVER, HELD_BACK, LATE]
    found = judged(play(trail, [*altered(trail, b"demo/last")[:-1], fewer]).differs)
    assert found.name == "demo/last"


def test_a_row_that_was_left_out_differs_whatever_is_held_back() -> None:
    trail = behind_a_lock()
    at = next(n for n, each in enumerate(trail.log) if each.key == b"demo/later")
    log = [each._replace(offset=each.offset - (n > at)) for n, each in enumerate(trail.log)]
    found = judged(play(trail, [*log[:at], *log[at + 1 :]]).differs)
    assert (found.name, found.logged) == ("demo/later", "no row")


def test_a_bounded_tenant_is_in_doubt() -> None:
    """What fires makes room for one more: whose turn was next, a request depends on."""
    trail = behind_a_lock()
    trail.set(T0 - HOUR, tenant="demo", max_pending=100)
    found = play(trail, altered(trail, b"demo/later")).differs
    assert found is not None
    assert found.doubt


def test_events_of_one_tenant_leave_in_due_order_whatever_is_held_back() -> None:
    trail = behind_a_lock()
    for each in range(2):
        trail.ask(T0 + 300, schedule_id=f"s{each}", at=T0 + 400)
    trail.step(T0 + 300)
    trail.step(T0 + 400)
    at = next(n for n in reversed(range(len(trail.log))) if is_manifest(trail.log[n]))
    row = trail.log[at].row
    assert row is not None
    manifest = decode_manifest(row)
    assert manifest.fired == 2
    other = encode_manifest(manifest._replace(digest=manifest.digest[::-1]))
    log = [*trail.log[:at], trail.log[at]._replace(row=other), *trail.log[at + 1 :]]
    assert judged(play(trail, log).differs).name == "digest"


@pytest.mark.parametrize("seed", range(8))
def test_a_playback_that_knows_few_ways_accuses_nobody(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = chaotic_trail(seed, monkeypatch)
    monkeypatch.setattr(player, "ways_of", lambda *given: islice(ways_of(*given), 2))
    found = play(trail).differs
    assert found is None or found.doubt


def test_what_other_tenants_have_is_no_reason_for_doubt() -> None:
    """Nor is a policy that compaction has removed, once the last one has replaced it."""
    trail = Leaving()
    trail.ask(T0, schedule_id="later", at=T0 + HOUR)
    trail.step(T0 + 5)
    for each in ({"payload_key_ref": "env:KEY"}, {"remember_ms": 0}, {"claim_check_over_bytes": 9}):
        trail.set(T0 - HOUR, tenant="other", **each)
        found = judged(play(trail, altered(trail, b"demo/later"), compacted=True).differs)
        assert found.name == "demo/later"
