"""A tenant whose payloads are encrypted at rest has the same events, and no payload lies readable.

The same random history is played twice, with keys and without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from belfry.client.key_ring import KeyRing
from belfry.store.layout.pending import Encrypted, Pending, decode_pending
from belfry.store.layout.pending_bytes import is_pending
from belfry.tenants.effective import EffectivePolicy
from tests.property.histories import TENANTS, History
from tests.unit.engine.driver import Step

SEEDS: Final = 10
STEPS: Final = 60
PLAIN: Final = b"plain text "
KEYS: Final = {name: KeyRing(name, [name.encode() * 16]) for name in TENANTS}


class Watched(History):
    """A history that notes what its steps did, with payloads that would be found in a row."""

    def __init__(self, seed: int, *, keyed: bool) -> None:
        super().__init__(seed)
        self.told: list[tuple[Any, ...]] = []
        if keyed:
            tenants = self.driver.tenants
            tenants.effective_of = lambda name: _keyed(tenants.defaults(name))
            follow = tenants.follow
            vars(tenants)["follow"] = lambda effective: follow(_keyed(effective))

    def step(self, *args: Any, **how: Any) -> Step:
        step = super().step(*args, **how)
        self.told.append((step.effects.fired, step.effects.lifecycle, step.effects.outcomes))
        return step

    def _request(self) -> dict[str, Any]:
        asked = super()._request()
        return {**asked, "payload": PLAIN + asked["payload"]} if "payload" in asked else asked


def _keyed(effective: EffectivePolicy) -> EffectivePolicy:
    policy = replace(effective.policy, payload_key_ref="env:BELFRY_SECRET_KEYS")
    return effective._replace(policy=policy, payload_keys=KEYS[policy.tenant])


def rows_of(history: History) -> list[bytes]:
    changelog = [value for _, value in history.driver.changelog if value]
    return [*changelog, *(value for _, value in history.driver.rows.scan(b"", b"\xff"))]


def played(seed: int, *, keyed: bool) -> Watched:
    history = Watched(seed, keyed=keyed)
    for _ in range(STEPS):
        history.go_on()
    return history


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_history_gives_the_same_events_with_keys(seed: int) -> None:
    encrypted = played(seed, keyed=True)
    assert encrypted.told == played(seed, keyed=False).told
    rows = rows_of(encrypted)
    assert not [row for row in rows if PLAIN in row]
    payloads = [
        row.payload for row in map(_pending, filter(is_pending, rows)) if row.payload is not None
    ]
    assert {type(payload) for payload in payloads} <= {Encrypted}


def _pending(record: bytes) -> Pending:
    return decode_pending(record)
