"""Large payloads: stored elsewhere before their row is committed, and claimed by its headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from belfry.client.key_ring import KeyRing
from belfry.engine.effects import STEP_BYTES
from belfry.engine.large_payloads import OBJECT_BYTES
from belfry.schedules.rejections import PASSING
from belfry.store.layout.pending import decode_pending
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claim_check import CLAIM, ENCRYPTED, SIZE, digest_of
from tests.unit.engine.driver import HOUR, T0, Driver, Step

OVER: Final = 100
LARGE: Final = b"p" * (OVER + 1)
DIGEST: Final = digest_of(LARGE)
CLAIMS: Final = [(CLAIM, DIGEST.encode()), (SIZE, str(len(LARGE)).encode())]


def claiming(over: int | None = OVER, **policy: Any) -> Driver:
    driver = Driver()
    driver.apply(claim_check_over_bytes=over, **policy)
    return driver


def asked(driver: Driver, now_ms: int = T0, **fields: Any) -> Step:
    driver.ask(timestamp_ms=now_ms, **{"at": now_ms + 5, **fields})
    return driver.step(now_ms, fire=False)


def rows(driver: Driver) -> Iterator[bytes]:
    """What is at rest: the changelog and the local store."""
    yield from (row for _, row in driver.changelog if row)
    yield from (row for _, row in driver.rows.scan(b"", b"\xff"))


def test_an_event_claims_what_the_step_has_stored() -> None:
    driver = claiming()
    step = asked(driver, payload=LARGE, key=b"k", headers=[{"name": "mine", "value": b"1"}])
    assert step.outcomes == ["ACCEPTED"]
    assert step.effects.objects == {("demo", DIGEST): LARGE}
    assert not [row for row in rows(driver) if LARGE in row]
    fired = driver.step(T0 + 5)
    (shot,) = fired.shots
    assert (shot.key, shot.value) == (b"k", b"")
    assert shot.headers[:3] == [("mine", b"1"), *CLAIMS]
    # Nothing is stored, or read, to fire it.
    assert fired.effects.objects == {}


@pytest.mark.parametrize("payload", [b"p" * OVER, b"", None])
@pytest.mark.parametrize("fields", [{}, {"group": "g"}, {"jitter_ms": 3}])
def test_what_is_not_larger_stays_where_it_is(payload: bytes | None, fields: Any) -> None:
    driver = claiming()
    assert asked(driver, payload=payload, **fields).effects.objects == {}
    (shot,) = driver.step(T0 + HOUR).shots
    assert shot.value == payload
    assert CLAIM not in dict(shot.headers)


@pytest.mark.parametrize("fields", [{}, {"jitter_ms": 3}, {"request_id": "r"}, {"group": "g"}])
def test_one_byte_more_is_stored_on_the_fast_way_and_on_the_general_one(fields: Any) -> None:
    driver = claiming()
    assert asked(driver, payload=LARGE, **fields).effects.objects == {("demo", DIGEST): LARGE}


def test_nothing_is_stored_for_anybody_else() -> None:
    driver = Driver()
    assert asked(driver, payload=LARGE).effects.objects == {}
    assert driver.step(T0 + 5).shots[0].value == LARGE


def test_a_repeat_changes_nothing_and_stores_nothing() -> None:
    driver = claiming()
    asked(driver, payload=LARGE, at=T0 + 5)
    again = asked(driver, payload=LARGE, at=T0 + 5)
    assert (again.outcomes, again.effects.objects) == (["UNCHANGED"], {})
    other = asked(driver, payload=LARGE + b"q", at=T0 + 5)
    assert other.outcomes == ["UPDATED"]
    assert [name for _, name in other.effects.objects] == [digest_of(LARGE + b"q")]


def test_a_step_that_is_done_again_names_the_same_object() -> None:
    driver = claiming()
    driver.ask(at=T0 + 5, payload=LARGE)
    first = driver.step(T0, fire=False, commit=False)
    again = driver.step(T0 + 1, fire=False)
    assert first.effects.objects == again.effects.objects == {("demo", DIGEST): LARGE}
    (shot,) = driver.step(T0 + 5).shots
    assert shot.headers[:2] == CLAIMS


@pytest.mark.parametrize(("before", "after"), [(None, OVER), (OVER, None)])
def test_another_policy_leaves_what_waits_as_it_is(before: int | None, after: int | None) -> None:
    """The same request is the same definition, wherever its payload lies."""
    driver = claiming(before)
    asked(driver, payload=LARGE, at=T0 + 5)
    driver.apply(claim_check_over_bytes=after)
    again = asked(driver, payload=LARGE, at=T0 + 5)
    assert (again.outcomes, again.effects.objects) == (["UNCHANGED"], {})
    assert asked(driver, payload=LARGE[:-1] + b"q", at=T0 + 5).outcomes == ["UPDATED"]


@pytest.mark.parametrize(("before", "after"), [(None, OVER), (OVER, None)])
@pytest.mark.parametrize(
    "rule",
    [
        {"at": None, "kind": "AFTER", "delay_ms": HOUR},
        {"at": None, "kind": "EVERY", "interval_ms": 100},
        {"at": T0 + HOUR, "jitter_ms": 500},
    ],
    ids=["AFTER", "EVERY", "AT"],
)
def test_a_later_repeat_under_another_policy_is_the_same_as_well(
    before: int | None, after: int | None, rule: dict[str, Any]
) -> None:
    """Whenever it came, whatever it waits for by then, and however often it has fired."""
    driver = claiming(before)
    asked(driver, payload=LARGE, **rule)
    asked(driver, payload=LARGE + b"q", **rule)
    driver.step(T0 + 250)
    driver.apply(claim_check_over_bytes=after)
    again = asked(driver, T0 + 260, payload=LARGE + b"q", **rule)
    assert (again.outcomes, again.effects.objects) == (["UNCHANGED"], {})
    other = {"delay_ms": HOUR + 1} if "delay_ms" in rule else {"priority": 1}
    changed = asked(driver, T0 + 270, payload=LARGE + b"q", **{**rule, **other})
    assert changed.outcomes == ["UPDATED"]


def test_a_claim_of_the_users_own_stays_and_gives_way_to_belfrys() -> None:
    own = [{"name": CLAIM, "value": b"0" * 64}, {"name": "mine", "value": b"1"}]
    driver = claiming()
    asked(driver, headers=own)
    asked(driver, schedule_id="b", headers=own, payload=LARGE)
    small, large = driver.step(T0 + 5).shots
    assert small.header(CLAIM) == b"0" * 64
    assert large.headers[:3] == [("mine", b"1"), *CLAIMS]


def test_while_the_store_is_away_large_payloads_are_refused_and_nothing_else_is() -> None:
    driver = claiming()
    driver.tenants.store_problem = "the store does not answer"
    refused = asked(driver, payload=LARGE)
    assert (refused.outcomes, refused.codes) == (["REJECTED"], ["payload_not_stored"])
    assert refused.effects.objects == {}
    (told,) = refused.effects.lifecycle
    assert "101 bytes cannot be: the store does not answer. Try again." in (told.reason or "")
    assert asked(driver, payload=LARGE, tenant="other").outcomes == ["ACCEPTED"]
    assert asked(driver, payload=b"small").outcomes == ["ACCEPTED"]
    assert asked(driver, action="CANCEL").outcomes == ["CANCELLED"]
    assert "payload_not_stored" in PASSING
    driver.tenants.store_problem = ""
    assert asked(driver, payload=LARGE).outcomes == ["ACCEPTED"]


def test_a_recurring_schedule_claims_with_each_event() -> None:
    driver = claiming()
    asked(driver, kind="EVERY", interval_ms=HOUR, at=None, payload=LARGE)
    for number in (1, 2, 3):
        (shot,) = driver.step(T0 + number * HOUR).shots
        assert (shot.value, shot.header(CLAIM)) == (b"", DIGEST.encode())


def test_a_payload_that_the_topic_would_not_take_is_claimed_and_fits() -> None:
    driver = claiming()
    driver.note(max_record_bytes=2_000)
    assert asked(driver, payload=b"p" * 5_000).outcomes == ["ACCEPTED"]
    driver.apply(claim_check_over_bytes=None)
    assert asked(driver, payload=b"p" * 5_001).codes == ["payload_too_large"]


@pytest.mark.parametrize("size", [OVER + 1, 200_000])
def test_a_step_stores_no_more_than_a_store_takes_soon(size: int) -> None:
    """What one tenant sends is divided among steps; all of it is taken in, in its order."""
    driver, number = claiming(), 60
    for each in range(number):
        driver.ask(schedule_id=f"{each}", at=T0 + 5, payload=b"%06d" % each + b"p" * (size - 6))
    stored: list[int] = []
    while sum(stored) < number:
        step = driver.step(T0, fire=False)
        stored.append(len(step.effects.objects))
        assert stored[-1] == len(step.outcomes)
    # The batch is the larger one here: a worker's have no more bytes than a step.
    room = STEP_BYTES + 2 * sum(len(value or b"") for _, _, _, value, _ in driver.source)
    assert max(stored) <= room // (OBJECT_BYTES + 3 * size) + 1 < number
    assert driver.run(T0 + 5) == [f"{each}" for each in range(number)]


def test_an_envelope_and_a_delivery_claim_as_well() -> None:
    driver = claiming(delivery="ENVELOPE")
    driver.note(envelope_head=b"head!")
    asked(driver, payload=LARGE, http_targets=[{"url": "https://hooks.example/x"}])
    step = driver.step(T0 + 5)
    (shot,), (delivery,) = step.shots, step.effects.deliveries
    assert shot.headers[:2] == delivery[2][:2] == CLAIMS
    assert LARGE not in (shot.value or b"") + delivery[1]


def test_the_row_is_that_of_a_client_which_claims() -> None:
    """No byte at rest is new: an older release fires what this one has kept."""
    driver, other = claiming(), Driver()
    asked(driver, payload=LARGE)
    asked(other, payload=b"", headers=[{"name": name, "value": value} for name, value in CLAIMS])
    mine, theirs = (
        [decode_pending(row) for name, row in each.changelog if row and name == b"demo/a"]
        for each in (driver, other)
    )
    assert mine == theirs
    assert len(mine) == 1


# -- with keys for payloads at rest ---------------------------------------------------------------

KEYS: Final = KeyRing("demo", [b"1" * 32])


def encrypting(keys: KeyRing | None = KEYS, over: int | None = OVER) -> Driver:
    driver = Driver()
    policy = TenantPolicy(
        "demo", payload_key_ref="file:keys", claim_check_over_bytes=over, lifecycle="ALL"
    )
    driver.tenants.follow(EffectivePolicy(policy, payload_keys=keys))
    return driver


def test_what_is_stored_is_encrypted_for_its_schedule() -> None:
    driver = encrypting()
    step = asked(driver, payload=LARGE)
    ((name, stored),) = step.effects.objects.items()
    assert name == ("demo", digest_of(stored))
    assert KEYS.decrypt(b"demo/a", stored) == LARGE
    assert not [row for row in (*rows(driver), stored) if LARGE in row]
    (shot,) = driver.step(T0 + 5).shots
    assert shot.value == b""
    assert shot.header(CLAIM) == digest_of(stored).encode()
    assert shot.header(ENCRYPTED) == b"demo/a"


def test_a_repeat_is_unchanged_under_the_same_key_and_an_update_under_a_newer_one() -> None:
    driver = encrypting()
    asked(driver, payload=LARGE, at=T0 + 5)
    again = asked(driver, payload=LARGE, at=T0 + 5)
    assert (again.outcomes, again.effects.objects) == (["UNCHANGED"], {})
    newer = KeyRing("demo", [b"2" * 32, b"1" * 32])
    effective = driver.tenants.of("demo").effective
    driver.tenants.follow(effective._replace(payload_keys=newer))
    after = asked(driver, payload=LARGE, at=T0 + 5)
    assert after.outcomes == ["UPDATED"]
    (stored,) = after.effects.objects.values()
    assert newer.decrypt(b"demo/a", stored) == LARGE


def test_an_encrypted_row_and_a_claim_to_the_same_are_one_definition() -> None:
    driver = encrypting(over=None)
    asked(driver, payload=LARGE, at=T0 + 5)
    effective = driver.tenants.of("demo").effective
    policy = replace(effective.policy, claim_check_over_bytes=OVER)
    driver.tenants.follow(effective._replace(policy=policy))
    again = asked(driver, payload=LARGE, at=T0 + 5)
    assert (again.outcomes, again.effects.objects) == (["UNCHANGED"], {})
    (shot,) = driver.step(T0 + 5).shots
    assert shot.value == LARGE


def test_without_the_key_nothing_is_stored() -> None:
    step = asked(encrypting(None), payload=LARGE)
    assert (step.codes, step.effects.objects) == (["payload_key_missing"], {})
