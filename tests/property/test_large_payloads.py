"""A tenant whose payloads lie elsewhere has the same events, once their claims are redeemed.

The same random history is played twice: with all payloads stored elsewhere, and with none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from belfry.engine.effects import Fired
from belfry.tenants.effective import EffectivePolicy
from belfry.wire.claim_check import CLAIM, SIZE, digest_of
from tests.property.histories import History
from tests.unit.engine.driver import Step

SEEDS: Final = 10
STEPS: Final = 60
PLAIN: Final = b"plain text "


class Watched(History):
    """A history that notes what its steps did, and has the store that they fill."""

    def __init__(self, seed: int, *, claims: bool) -> None:
        super().__init__(seed)
        self.told: list[tuple[Any, ...]] = []
        self.stored: dict[tuple[str, str], bytes] = {}
        self.redeemed = 0
        if claims:
            tenants = self.driver.tenants
            tenants.effective_of = lambda name: _claiming(tenants.defaults(name))
            follow = tenants.follow
            vars(tenants)["follow"] = lambda effective: follow(_claiming(effective))

    def step(self, *args: Any, **how: Any) -> Step:
        step = super().step(*args, **how)
        effects = step.effects
        # What a step that is rolled back has stored stays.
        self.stored |= effects.objects
        fired = [self._as_redeemed(each) for each in effects.fired]
        self.told.append((fired, effects.lifecycle, effects.outcomes))
        return step

    def _request(self) -> dict[str, Any]:
        asked = super()._request()
        return {**asked, "payload": PLAIN + asked["payload"]} if "payload" in asked else asked

    def _as_redeemed(self, fired: Fired) -> Fired:
        """The event as its consumer has it."""
        topic, key, group, value, headers = fired
        said = dict(headers)
        digest = said.get(CLAIM)
        if digest is None:
            return fired
        assert value == b""
        tenant = (said["belfry-schedule-tenant"] or b"").decode()
        payload = self.stored[tenant, digest.decode()]
        assert said[SIZE] == str(len(payload)).encode()
        self.redeemed += 1
        own = [each for each in headers if each[0] not in (CLAIM, SIZE)]
        return topic, key, group, payload, own


def _claiming(effective: EffectivePolicy) -> EffectivePolicy:
    return effective._replace(policy=replace(effective.policy, claim_check_over_bytes=0))


def played(seed: int, *, claims: bool) -> Watched:
    history = Watched(seed, claims=claims)
    for _ in range(STEPS):
        history.go_on()
    return history


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_history_gives_the_same_events_with_claims(seed: int) -> None:
    elsewhere, here = played(seed, claims=True), played(seed, claims=False)
    assert elsewhere.told == here.told
    assert here.stored == {}
    assert all(name == digest_of(payload) for (_, name), payload in elsewhere.stored.items())
    changelog = [value for _, value in elsewhere.driver.changelog if value]
    rows = [*changelog, *(value for _, value in elsewhere.driver.rows.scan(b"", b"\xff"))]
    assert not [row for row in rows if PLAIN in row]


def test_histories_redeem_claims() -> None:
    assert sum(played(seed, claims=True).redeemed for seed in range(SEEDS)) > 10
