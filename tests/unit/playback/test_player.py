"""A partition's log, played again: the same bytes, and what is found where they are not."""

from __future__ import annotations

import pytest

from belfry.engine.job_counts import Budget
from belfry.playback.logged import LoggedRow, Unplayable
from belfry.schedules.bulk import BulkSpec
from belfry.store.layout.records import decode_marker, encode_marker
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, is_manifest, play, replaced

MINUTE = 60_000


def busy(**policy: int) -> Leaving:
    """Some minutes of one partition: one-shots, rules, groups, cancels, pauses, owners."""
    trail = Leaving()
    if policy:
        trail.set(T0 - HOUR, tenant="demo", **policy)
    for each in range(60):
        trail.ask(T0, schedule_id=f"one-{each}", at=T0 + 1_000 + 10 * each, payload=b"x" * each)
    trail.ask(T0, schedule_id="cron", kind="CRON", cron="* * * * *", timezone="Europe/Paris")
    trail.ask(T0, schedule_id="every", interval_ms=7_000, kind="EVERY")
    for each in range(5):
        trail.ask(
            T0,
            schedule_id=f"g-{each}",
            at=T0 + 2_000,
            group="g",
            serial=True,
            request_id=f"r{each}",
        )
    trail.ask(T0, schedule_id="later", at=T0 + HOUR)
    trail.step(T0 + 5)
    trail.step(T0 + 1_100)
    trail.ask(T0 + 1_100, schedule_id="one-50", action="CANCEL", request_id="gone")
    trail.ask(T0 + 1_100, schedule_id="every", action="PAUSE")
    trail.ask(T0 + 1_100, schedule_id="later", action="TRIGGER")
    trail.step(T0 + 1_205, at_most=7)
    trail.step(T0 + 1_400, commit=False)
    trail.step(T0 + 1_401)
    trail.step(T0 + 2_600, at_most=3)
    trail.own(T0 + 9_000)
    trail.ask(T0 + 9_001, schedule_id="every", action="RESUME")
    trail.step(T0 + 9_010, fire=False)
    trail.run(T0 + 9_020)
    for minute in range(1, 6):
        trail.run(T0 + minute * MINUTE + 2)
    return trail


def test_what_a_worker_wrote_comes_out_again_to_the_byte() -> None:
    trail = busy()
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    counts = outcome.player.counts
    assert (counts.owners, counts.requests) == (2, len(trail.source))
    assert counts.fires == len(trail.events) == outcome.events > 60
    assert counts.rows == len(trail.log)
    assert counts.attempts < 3 * counts.steps
    assert counts.owed == 0


@pytest.mark.parametrize("remember_ms", [0, 60_000])
def test_ends_that_are_forgotten_are_played_as_well(remember_ms: int) -> None:
    """No row says when a step fired whose ends left none."""
    trail = busy(remember_ms=remember_ms)
    trail.ask(T0 + 7 * MINUTE, schedule_id="late", at=T0 + HOUR)
    trail.step(T0 + 7 * MINUTE)
    trail.sweep(T0 + 7 * MINUTE, at_most=40)
    assert any(each.key == b"demo/one-10" and each.row is None for each in trail.log)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.player.counts.fires == len(trail.events) > 60


def test_a_forged_row_is_found() -> None:
    trail = busy()
    at = next(n for n, each in enumerate(trail.log) if each.key == b"demo/one-3" and each.row)
    forged = LoggedRow(trail.log[at].offset, T0, b"demo/theirs", trail.log[at].row)
    found = play(trail, [*trail.log[:at], forged, *trail.log[at:]]).differs
    assert found is not None
    assert (found.what, found.name, found.offset) == ("row", "demo/theirs", forged.offset)
    assert "no request asks for it" in found.played


def test_a_row_with_another_byte_is_found() -> None:
    trail = busy()
    markers = [each for each in trail.log if each.key == b"demo/one-7" and each.row]
    assert markers[-1].row is not None
    marker = decode_marker(markers[-1].row)
    later = encode_marker(marker._replace(version=marker.version + 1))
    log = [each._replace(row=later) if each is markers[-1] else each for each in trail.log]
    found = play(trail, log).differs
    assert found is not None
    assert (found.name, found.offset) == ("demo/one-7", markers[-1].offset)
    assert "the marker of a schedule that is over" in found.logged


def test_a_request_that_was_another_one_is_found() -> None:
    trail = busy()
    key_of = {each[0]: each for each in trail.source}
    trail.source[3] = (3, *key_of[4][1:])
    found = play(trail).differs
    assert found is not None
    assert found.transaction == 2


def test_another_policy_than_the_one_of_the_log_is_found() -> None:
    trail = Leaving()
    trail.set(T0, tenant="demo", max_pending=3)
    for each in range(6):
        trail.ask(T0 + 1, schedule_id=f"a{each}", at=T0 + 1_000)
    trail.step(T0 + 10)
    assert play(trail).differs is None
    trail.policies[0] = trail.policies[0]._replace(policy=None)
    found = play(trail).differs
    assert found is not None
    assert found.transaction == 2


def test_a_policy_is_seen_at_the_step_that_saw_it() -> None:
    trail = Leaving()
    for each in range(6):
        trail.ask(T0 + 1, schedule_id=f"a{each}", at=T0 + 1_000)
    trail.step(T0 + 10)
    trail.set(T0 + 900, tenant="demo", paused=True)
    trail.step(T0 + 1_005)
    trail.set(T0 + 2_000, tenant="demo", paused=False)
    trail.run(T0 + 2_010)
    # As if it had been written before the step that did not see it yet.
    assert len(trail.events) == 6
    assert play(trail).differs is None
    trail.policies[0] = trail.policies[0]._replace(at_ms=T0 + 5)
    assert play(trail).differs is None


def test_a_tenant_whose_topic_was_not_there_yet_is_held() -> None:
    trail = Leaving()
    for name in ("demo", "other"):
        trail.ask(T0, tenant=name, at=T0 + 1_000)
    trail.step(T0 + 10)
    trail.tenants.hold("demo", "its topic is missing")
    trail.run(T0 + 1_001)
    trail.tenants.hold("demo", "")
    trail.run(T0 + 1_500)
    assert [fired[0] for _, fired in trail.events] == ["belfry.fired.other", "belfry.fired.demo"]
    assert play(trail).differs is None


def test_what_a_sweep_forgot_is_forgotten_only_in_its_time() -> None:
    trail = Leaving()
    trail.ask(T0, at=T0 + 10, request_id="r")
    trail.step(T0 + 5)
    trail.run(T0 + 20)
    trail.ask(T0 + 25 * HOUR, schedule_id="b", at=T0 + 30 * HOUR)
    trail.step(T0 + 25 * HOUR)
    trail.sweep(T0 + 25 * HOUR + 1)
    gone = [each for each in trail.log if each.row is None]
    assert len(gone) == 2
    assert play(trail).differs is None
    # The same tombstone before its time.
    early = LoggedRow(0, T0, b"demo/a", None)
    at = [n for n, each in enumerate(trail.log) if is_manifest(each)][3]
    found = play(trail, [*trail.log[:at], early, *trail.log[at:]]).differs
    assert found is not None
    assert found.name == "demo/a"


def held_back() -> Leaving:
    """A serial group, of which two wait behind an ack lock while a new owner comes."""
    trail = Leaving()
    for each in range(4):
        more = {"group": "g", "serial": True, "ack_timeout_ms": 5_000}
        trail.ask(T0, schedule_id=f"g{each}", at=T0 + 100 + each, **more)
    trail.step(T0 + 5)
    trail.run(T0 + 200)
    trail.ask(T0 + 300, schedule_id="other", at=T0 + 301)
    trail.step(T0 + 300)
    return trail


@pytest.mark.parametrize("cold", [False, True])
def test_an_owner_with_and_one_without_local_state_are_played(*, cold: bool) -> None:
    trail = held_back()
    for each in range(20):
        # Others of the tenant fire in the same steps, or no more was known than that it waits.
        trail.ask(T0 + 400, schedule_id=f"x{each}", at=T0 + 6_001 + each)
    trail.step(T0 + 400)
    trail.own(T0 + 6_000, cold=cold)
    for now_ms in [*range(T0 + 6_001, T0 + 6_030), *range(T0 + 7_000, T0 + 30_000, 500)]:
        trail.run(now_ms)
    assert len(trail.events) == 25
    assert play(trail).differs is None


def test_bulk_jobs_are_played() -> None:
    trail = Leaving()
    for each in range(300):
        trail.ask(T0, schedule_id=f"s{each:03}", at=T0 + HOUR)
    trail.step(T0 + 5)
    spec = BulkSpec(action="CANCEL", prefix="s", per_second=10_000).text()
    trail.ask(T0 + 10, schedule_id="job", action="BULK", bulk=spec)
    trail.step(T0 + 12)
    # Ten steps are more than it needs: those behind its end do nothing.
    for number in range(1, 11):
        now_ms = T0 + 300 * number
        trail.engine.advance_jobs(now_ms, Budget(1_000, 100))
        trail.end(now_ms)
    assert not trail.engine.jobs.under_way
    assert play(trail).differs is None


def test_a_row_that_compaction_has_removed_is_owed_by_a_later_one() -> None:
    trail = busy()
    written = [each for each in trail.log if each.key == b"demo/one-9"]
    assert len(written) == 2
    outcome = play(trail, [each for each in trail.log if each is not written[0]])
    assert outcome.differs is None
    assert outcome.player.counts.owed == 1
    found = play(trail, [each for each in trail.log if each not in written]).differs
    assert found is not None
    assert found.name == "demo/one-9"


def test_a_transaction_that_compaction_has_removed_is_told() -> None:
    trail = busy()
    first = next(n for n, each in enumerate(trail.log) if is_manifest(each))
    with pytest.raises(Unplayable, match=r"holds transaction 2, and not transaction 1 before it"):
        play(trail, trail.log[first + 1 :])


def test_time_zone_data_of_another_release_is_told() -> None:
    trail = busy()
    log = replaced(trail.log, b"\0z", b"\1\x071999z")
    with pytest.raises(Unplayable, match="1999z"):
        play(trail, log)


@pytest.mark.parametrize("held", ["", "its topic is missing"])
def test_a_step_that_fired_nothing_may_have_taken_one_row_more(held: str) -> None:
    """Each way goes on, for which of them it was shows with the next step alone.

    So it is where another tenant is held, who may have been let go as well.
    """
    trail = Leaving()
    trail.ask(T0, tenant="other", schedule_id="o", at=T0 + 1)
    trail.note("other", held=held)
    trail.ask(T0, schedule_id="first", at=T0 + 1, group="g", serial=True, ack_timeout_ms=MINUTE)
    for each in range(99):
        trail.ask(T0, schedule_id=f"held-{each}", at=T0 + 10 + each, group="g")
        trail.ask(T0, schedule_id=f"free-{each}", at=T0 + 200 + each)
    trail.step(T0)
    trail.step(T0 + 2, take=0)
    # The 50th is due one millisecond after the watermark of the step that holds it back.
    trail.step(T0 + 400, at_most=50, take=0)
    assert trail.engine.manifest.watermark_ms == T0 + 10 + 48
    assert trail.step(T0 + 401, at_most=50, take=0).ids == ["free-0"]
    trail.run(T0 + 402)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events == len(trail.events) == 101 - bool(held)


def test_a_step_that_stopped_before_an_acknowledgement_timed_out_may_have_ended_it() -> None:
    """Its watermark is of before the time-out, and no row of it says when it was."""
    trail = Leaving()
    trail.ask(T0, schedule_id="long", at=T0 + 1, group="g", serial=True, ack_timeout_ms=MINUTE)
    trail.ask(T0, schedule_id="short", at=T0 + 1, group="h", serial=True, ack_timeout_ms=300)
    for each in range(99):
        trail.ask(T0, schedule_id=f"held-{each}", at=T0 + 10 + each, group="g")
    trail.step(T0)
    assert len(trail.step(T0 + 2, take=0).ids) == 2
    ended = trail.step(T0 + 400, at_most=50, take=0)
    assert (ended.ids, trail.engine.manifest.watermark_ms) == ([], T0 + 10 + 48)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def test_a_tenant_that_was_let_go_may_show_it_with_the_next_step_alone() -> None:
    """What is late of it joins the queue of catching up, which no row tells."""
    trail = Leaving()
    late = {"kind": "EVERY", "interval_ms": 1_000, "misfire": "FIRE_ALL", "max_fires": 3}
    trail.ask(T0, schedule_id="late", **late)
    trail.step(T0)
    trail.note(held="its topic is missing")
    trail.step(T0 + 1_500, take=0)
    trail.ask(T0 + 2 * MINUTE, tenant="other", schedule_id="o", at=2 * HOUR + T0)
    trail.step(T0 + 2 * MINUTE)
    trail.note(held="")
    trail.ask(T0 + 2 * MINUTE + 1, tenant="other", schedule_id="p", at=2 * HOUR + T0)
    assert trail.step(T0 + 2 * MINUTE + 2).ids == []
    assert trail.step(T0 + 2 * MINUTE + 20, at_most=2, take=0).ids == ["late", "late"]
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs


def several_owners() -> Leaving:
    """Three owners: the second takes over while something is overdue, the third is not told so."""
    trail = Leaving()
    cron = {"kind": "CRON", "cron": "*/10 * * * * *", "timezone": "Europe/Paris"}
    trail.ask(T0, schedule_id="cron", **cron)
    for each in range(5):
        trail.ask(T0, schedule_id=f"s{each}", at=T0 + 1_000, request_id=f"r{each}")
    trail.step(T0)
    trail.tenants.hold("demo", "its topic is missing")
    trail.step(T0 + 1_001, take=0)
    trail.own(T0 + 2_000)
    trail.tenants.hold("demo", "")
    trail.run(T0 + 2_001)
    trail.own(T0 + MINUTE, cold=True)
    trail.ask(T0 + MINUTE, schedule_id="s0", at=T0 + MINUTE + 5)
    trail.step(T0 + MINUTE, fire=False)
    trail.run(T0 + 2 * MINUTE)
    return trail


@pytest.mark.parametrize("from_ms", [T0 + 1_500, T0 + 3_000])
def test_a_playback_may_begin_with_a_later_owner(from_ms: int) -> None:
    trail = several_owners()
    outcome = play(trail, from_ms=from_ms)
    assert outcome.differs is None, outcome.differs
    counts = outcome.player.counts
    assert (counts.owners, counts.requests) == (1, 1)
    assert 5 < counts.fires == outcome.events < len(trail.events)


def test_a_playback_begins_where_the_state_is_whole() -> None:
    trail = several_owners()
    with pytest.raises(Unplayable, match="no owner took the partition over since then"):
        play(trail, from_ms=T0 + HOUR)
    last = max(each.offset for each in trail.log if each.key == b"demo/cron")
    compacted = [each for each in trail.log if each.key != b"demo/cron" or each.offset == last]
    with pytest.raises(Unplayable, match="compaction has removed too much"):
        play(trail, compacted, from_ms=T0 + 3_000)
    two_owners = [each for each in trail.log if each.written_ms < T0 + MINUTE]
    with pytest.raises(Unplayable, match="at each take-over since then something was held back"):
        play(trail, two_owners, from_ms=T0 + 1_500)
