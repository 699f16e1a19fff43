"""Where a playback begins that is given an instant: with the first owner from then on."""

from __future__ import annotations

import re

import pytest

from belfry.engine.job_counts import Budget
from belfry.playback.logged import LoggedRow, Unplayable
from belfry.store.layout import keys
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.test_told_instants import waiting_for_group
from tests.unit.playback.trail import Leaving, Outcome, is_manifest, play

OWNED_MS = T0 + 2_000


def two_owners() -> Leaving:
    """The second one takes over at `OWNED_MS`, when nothing is overdue."""
    trail = Leaving()
    trail.ask(T0, schedule_id="early", at=T0 + 1_000)
    trail.ask(T0, schedule_id="late", at=T0 + 5_000)
    trail.step(T0)
    trail.run(T0 + 1_000)
    trail.own(OWNED_MS)
    trail.run(T0 + 5_000)
    assert len(trail.events) == 2
    return trail


def same(outcome: Outcome) -> Outcome:
    assert outcome.differs is None, outcome.differs
    return outcome


@pytest.mark.parametrize("from_ms", [0, T0 - HOUR, T0])
def test_from_before_its_birth_a_partition_is_played_from_its_birth_on(from_ms: int) -> None:
    trail = two_owners()
    counts = same(play(trail, from_ms=from_ms)).player.counts
    assert counts == same(play(trail)).player.counts
    assert (counts.owners, counts.fires) == (2, 2)


def test_a_birth_that_is_gone_is_no_beginning() -> None:
    trail = two_owners()
    first = next(n for n, each in enumerate(trail.log) if is_manifest(each))
    counts = same(play(trail, trail.log[first + 1 :], from_ms=0)).player.counts
    assert (counts.owners, counts.fires) == (1, 1)


def test_an_owner_counts_from_the_millisecond_of_its_first_step_on() -> None:
    trail = two_owners()
    owner = next(each for each in trail.log if is_manifest(each) and each.written_ms >= OWNED_MS)
    outcome = same(play(trail, from_ms=owner.written_ms))
    assert (outcome.player.counts.owners, outcome.player.counts.fires) == (1, 1)
    at = "2027-01-15T08:00:02.004Z"
    said = f"Nothing can be played from {at} on: no owner took the partition over since then."
    with pytest.raises(Unplayable, match=re.escape(said)):
        play(trail, from_ms=owner.written_ms + 1)


def test_what_waits_for_an_acknowledgement_hinders_no_beginning() -> None:
    """It waits behind a lock, and its row in the changelog tells so."""
    trail = Leaving()
    fire_id = waiting_for_group(trail)
    trail.own(OWNED_MS)
    trail.ask(OWNED_MS + 1, action="ACK", schedule_id="part", fire_id=fire_id)
    trail.step(OWNED_MS + 2)
    trail.engine.advance_jobs(OWNED_MS + 10, Budget(1_000, 100))
    trail.end(OWNED_MS + 10)
    assert trail.run(T0 + 3_000) == ["whole"]
    assert same(play(trail, from_ms=OWNED_MS)).player.counts.fires == 1
    assert same(play(trail)).player.counts.fires == 2


def test_something_that_is_overdue_by_a_millisecond_is_held_back() -> None:
    for held in (False, True):
        trail = Leaving()
        trail.ask(T0, schedule_id="a", at=T0 + 1_000)
        trail.ask(T0, tenant="other", schedule_id="b", at=T0 + 1_000 + (not held))
        trail.step(T0)
        trail.tenants.hold("other", "its topic is missing")
        trail.step(T0 + 1_000, take=0)
        trail.own(OWNED_MS)
        trail.tenants.hold("other", "")
        trail.run(OWNED_MS + 1)
        assert len(trail.events) == 2
        if held:
            with pytest.raises(Unplayable, match=r"since then something was held back\.$"):
                play(trail, from_ms=OWNED_MS)
        else:
            same(play(trail, from_ms=OWNED_MS))


def test_a_fold_that_lacks_what_compaction_has_removed_says_so() -> None:
    trail = two_owners()
    log = [each for each in trail.log if each.key != b"demo/late" or each.written_ms > OWNED_MS]
    said = r": of what came before, compaction has removed too much \(0 schedules wait here, 1 by"
    with pytest.raises(Unplayable, match=said):
        play(trail, log, from_ms=OWNED_MS)


def test_a_manifest_of_which_compaction_has_left_a_tombstone_ends_no_transaction() -> None:
    trail = two_owners()
    gone = LoggedRow(0, T0, keys.manifest_key(7), None)
    at = next(n for n, each in enumerate(trail.log) if is_manifest(each))
    log = [*trail.log[: at + 1], gone, *trail.log[at + 1 :]]
    same(play(trail, log, from_ms=OWNED_MS))
