"""A log comes out again to the byte where payloads lie elsewhere, and events say where from."""

from __future__ import annotations

from belfry.wire.claim_check import CLAIM
from belfry.wire.headers import SOURCE
from tests.unit.playback.test_player import busy
from tests.unit.playback.trail import play


def test_claims_and_sources_are_played_without_a_store() -> None:
    trail = busy(claim_check_over_bytes=20, source_header=True)
    headers = [dict(fired[4]) for _, fired in trail.events]
    assert any(CLAIM in each for each in headers)
    assert any(SOURCE in each for each in headers)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events > 60
