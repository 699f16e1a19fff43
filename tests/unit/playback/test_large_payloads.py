"""A log comes out again to the byte where payloads lie elsewhere, and events say where from."""

from __future__ import annotations

from belfry.wire.claim_check import CLAIM
from belfry.wire.headers import SOURCE
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.test_player import busy
from tests.unit.playback.trail import Leaving, play


def test_claims_and_sources_are_played_without_a_store() -> None:
    trail = busy(claim_check_over_bytes=20, source_header=True)
    headers = [dict(fired[4]) for _, fired in trail.events]
    assert any(CLAIM in each for each in headers)
    assert any(SOURCE in each for each in headers)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events > 60
    # That the store was there is what is tried first.
    counts = outcome.player.counts
    assert counts.attempts < 3 * counts.steps


def test_what_was_refused_while_the_store_was_away_is_refused_again() -> None:
    trail = Leaving()
    trail.set(T0 - HOUR, tenant="demo", claim_check_over_bytes=20, lifecycle="ALL")
    for minute, away in enumerate(("", "it does not answer", "")):
        trail.tenants.store_problem = away
        for size in (10, 30):
            trail.ask(
                T0 + minute,
                schedule_id=f"{minute}-{size}",
                at=T0 + HOUR,
                payload=b"p" * size,
            )
        step = trail.step(T0 + minute)
        assert step.codes == (["payload_not_stored"] if away else [])
    trail.run(T0 + HOUR)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events == len(trail.events) == 5
