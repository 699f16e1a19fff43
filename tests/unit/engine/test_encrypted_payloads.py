"""Payloads encrypted at rest: kept unreadable, and fired as they were sent, by each key.

The keys are real ones, of two secrets: `OLD`, and `NEW` that came after it.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.client.key_ring import KeyRing
from belfry.store.layout import keys
from belfry.store.layout.pending import Encrypted, decode_pending
from belfry.store.layout.pending_bytes import is_plain_one_shot, payload_bytes
from belfry.store.layout.verdicts import decode_verdict
from belfry.store.readable import why_unreadable
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_jobs import advance, begin

OLD: Final = b"a secret of thirty-two bytes, old"
NEW: Final = b"a secret of thirty-two bytes, new"
SECRET: Final = b"card 4711"
NAME: Final = b"demo/a"
REF: Final = "env:BELFRY_SECRET_DEMO"
WEBHOOK: Final = {"url": "https://example.org/x", "headers": []}


def let(driver: Driver, *secrets: bytes, ref: str | None = REF, **policy: Any) -> None:
    """Let the tenant have keys of these secrets, the first being the newest."""
    ring = KeyRing("demo", secrets) if secrets else None
    told = TenantPolicy("demo", payload_key_ref=ref, **{"lifecycle": "ALL", **policy})
    driver.tenants.follow(EffectivePolicy(told, payload_keys=ring))


def keyed(*secrets: bytes) -> Driver:
    driver = Driver()
    let(driver, *(secrets or (OLD,)))
    return driver


def kept(driver: Driver, name: bytes = NAME) -> bytes:
    """The last row of a schedule in the changelog."""
    row = dict(driver.changelog)[name]
    assert row is not None
    return row


def asked(driver: Driver, now_ms: int = T0, **fields: Any) -> tuple[list[str], list[str]]:
    driver.ask(**{"payload": SECRET, "at": T0 + HOUR, **fields})
    step = driver.step(now_ms)
    return step.outcomes, step.codes


def values(driver: Driver, now_ms: int) -> list[bytes | None]:
    return [shot.value for shot in driver.step(now_ms).shots]


def test_it_lies_encrypted_and_fires_as_it_was_sent() -> None:
    driver = keyed()
    assert asked(driver) == (["ACCEPTED"], [])
    row = kept(driver)
    assert SECRET not in row
    assert isinstance(decode_pending(row).payload, Encrypted)
    assert payload_bytes(row) == len(SECRET)
    assert (why_unreadable(row), is_plain_one_shot(row)) == ("", False)
    assert values(driver, T0 + HOUR) == [SECRET]


def test_what_was_held_back_is_decrypted_as_well() -> None:
    driver = keyed()
    asked(driver)
    driver.tenants.hold("demo", "its topic is missing")
    assert driver.step(T0 + HOUR).shots == []
    driver.tenants.hold("demo", "")
    assert values(driver, T0 + HOUR) == [SECRET]


def test_the_fast_path_leaves_it_to_the_general_way() -> None:
    driver = Driver(Level.FAILURES)
    let(driver, OLD, lifecycle="FAILURES")
    asked(driver)
    assert SECRET not in kept(driver)


@pytest.mark.parametrize("payload", [None, b""])
def test_nothing_is_left_as_nothing(payload: bytes | None) -> None:
    driver = keyed()
    asked(driver, payload=payload)
    assert type(decode_pending(kept(driver)).payload) is type(payload)
    assert values(driver, T0 + HOUR) == [payload]


def test_the_same_row_comes_of_the_same_request_wherever_it_is_made() -> None:
    rows = set()
    for _ in range(2):
        driver = keyed()
        asked(driver, request_id="r")
        rows.add((kept(driver), kept(driver, b"\0rdemo/r")))
    assert len(rows) == 1


def test_a_row_of_another_schedule_does_not_fire_in_its_place() -> None:
    """Who copies an encrypted payload into the row of a schedule of its own gets nothing."""
    driver = keyed()
    asked(driver)
    stolen = decode_pending(kept(driver)).payload
    asked(driver, schedule_id="b")
    row = decode_pending(kept(driver, b"demo/b"))
    assert stolen is not None
    assert stolen != row.payload
    with pytest.raises(ValueError, match="not what was encrypted for it"):
        KeyRing("demo", [OLD]).decrypt(row.name, stolen)


def test_an_older_release_holds_what_it_cannot_read() -> None:
    """The flag is none that it knows: it does not send the ciphertext out as if it were plain."""
    driver = keyed()
    asked(driver)
    assert kept(driver)[3] & ~0b111


# -- change of keys --------------------------------------------------------------------------------


def test_after_a_change_of_keys_both_can_be_read() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, NEW, OLD)
    asked(driver, schedule_id="b")
    assert values(driver, T0 + HOUR) == [SECRET, SECRET]


@pytest.mark.parametrize("before", [(OLD,), ()])
def test_the_same_request_changes_nothing_though_the_key_is_another(
    before: tuple[bytes, ...],
) -> None:
    driver = keyed()
    let(driver, *before, ref=REF if before else None)
    asked(driver, request_id="r")
    let(driver, NEW, OLD)
    assert asked(driver) == (["UNCHANGED"], [])
    assert asked(driver, action="CREATE") == (["CONFLICT"], [])
    assert asked(driver, request_id="r")[0] == ["DUPLICATE"]
    assert asked(driver, payload=b"other", request_id="r")[0] == ["CONFLICT"]
    assert asked(driver, payload=b"other") == (["UPDATED"], [])


def test_the_digest_of_a_request_tells_no_payload() -> None:
    """Who reads the changelog cannot try guesses on it."""
    digests = []
    for secrets in ((), (OLD,), (NEW,)):
        driver = keyed()
        let(driver, *secrets, ref=REF if secrets else None)
        asked(driver, request_id="r")
        digests.append(decode_verdict(kept(driver, keys.request_key("demo", "r"))).digest)
    assert len(set(digests)) == 3


def test_what_recurs_stays_encrypted_from_fire_to_fire() -> None:
    driver = keyed(OLD)
    asked(driver, kind="EVERY", at=None, interval_ms=HOUR)
    for hour in range(1, 4):
        assert values(driver, T0 + hour * HOUR) == [SECRET]
        assert SECRET not in kept(driver)


def test_a_bulk_move_leaves_it_encrypted() -> None:
    driver = keyed(OLD)
    asked(driver)
    begin(driver, "MOVE", move_ms=HOUR)
    advance(driver)
    assert SECRET not in kept(driver)
    assert values(driver, T0 + 2 * HOUR) == [SECRET]


def test_http_targets_are_refused_for_deliveries_lie_in_topics() -> None:
    driver = keyed(OLD)
    assert asked(driver, http_targets=[WEBHOOK]) == (["REJECTED"], ["target_not_allowed"])
