"""Payloads encrypted anew by a bulk job: none depends on the old key, each has one outcome."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from belfry.client.key_ring import KeyRing
from belfry.engine.job_counts import Budget
from belfry.engine.rekeying import is_sealed_elsewhere, is_under_another
from belfry.schedules.bulk import BulkSpec, read_bulk
from belfry.schedules.rejections import Rejection
from belfry.store.job_lookup import preview, wanted_by
from belfry.store.layout.jobs import RUNNING
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_PAUSED,
    IN_TIMELINE,
    decode_location,
    is_location,
)
from belfry.store.layout.pending import (
    Encrypted,
    Pending,
    decode_headers,
    decode_pending,
    encode_headers,
)
from belfry.store.layout.pending_bytes import last_fires, paused, same_definition, with_encrypted
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.payload_keys import key_id_of
from belfry.wire.claim_check import CLAIM, ENCRYPTED
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_encrypted_payloads import (
    NEW,
    OLD,
    SECRET,
    asked,
    kept,
    keyed,
    let,
    values,
)
from tests.unit.engine.test_jobs import FAST, MUCH, advance, begin, finish, row

NEWEST: Final = KeyRing("demo", [NEW]).newest


def rows_of(driver: Driver) -> dict[bytes, Pending]:
    """What waits, by its name."""
    store = driver.engine._store
    return {
        name: decode_pending(store.pending_at(name, place))
        for name, place in store.between(b"demo/", b"demo0")
        if is_location(place)
    }


def keys_of(driver: Driver) -> set[str]:
    """The ids of the keys that anything depends on which waits; "" for a readable payload."""
    payloads = [each.payload for each in rows_of(driver).values() if each.payload]
    return {key_id_of(each) if type(each) is Encrypted else "" for each in payloads}


def test_nothing_depends_on_the_old_key_afterwards() -> None:
    driver = keyed(OLD)
    asked(driver)
    asked(driver, schedule_id="none", payload=None)
    asked(driver, schedule_id="empty", payload=b"")
    let(driver, ref=None)
    asked(driver, schedule_id="plain")
    let(driver, NEW, OLD)
    asked(driver, schedule_id="new")
    before = kept(driver)
    assert begin(driver, "REKEY", key=NEWEST) == ["ACCEPTED"]
    assert finish(driver) == ["UPDATED a", "UPDATED plain"]
    assert keys_of(driver) == {NEWEST}
    done = row(driver)
    assert (done.examined, done.done, done.unchanged, done.refused) == (5, 2, 0, 0)
    assert decode_pending(kept(driver))._replace(payload=None) == decode_pending(before)._replace(
        payload=None
    )
    let(driver, NEW)
    assert values(driver, T0 + HOUR) == [SECRET, None, b"", SECRET, SECRET]


@pytest.mark.parametrize(
    ("place", "letter"),
    [
        ("timeline", IN_TIMELINE),
        ("paused", IN_PAUSED),
        ("backlog", IN_BACKLOG),
        ("locked", BEHIND_LOCK),
        ("isolated", IN_BACKLOG),
        ("waits", BEHIND_LOCK),
    ],
)
def test_it_stays_where_it_waits(place: str, letter: int) -> None:
    driver = keyed(OLD)
    more: dict[str, Any] = {}
    if place == "locked":
        asked(driver, schedule_id="first", at=T0 + 1, group="g", serial=True)
        more = {"at": T0 + 2, "group": "g", "serial": True}
    if place == "waits":
        asked(driver, schedule_id="first", group="g", serial=True)
        more = {"kind": "AFTER_ACK", "at": None, "after_ack": "first"}
    if place == "isolated":
        let(driver, OLD, priority=-1)
    asked(driver, **more)
    if place == "paused":
        asked(driver, action="PAUSE")
    if place == "backlog":
        driver.tenants.hold("demo", "its topic is missing")
        driver.step(T0 + HOUR)
    if place == "locked":
        driver.step(T0 + 2)
    store = driver.engine._store
    where, waiting = store.named(b"demo/a"), driver.engine.pending
    counts = driver.engine._parts.waiting.unsaid
    assert where is not None
    assert decode_location(where).where == letter
    record = store.pending_at(b"demo/a", where)
    let(driver, NEW, OLD)
    begin(driver, "REKEY")
    now_ms = T0 + HOUR + 1 if place == "backlog" else T0 + 3
    told = [each.schedule_id for each in advance(driver, now_ms=now_ms)]
    assert "a" in told
    assert store.named(b"demo/a") == where
    assert driver.engine.pending == waiting
    now = store.pending_at(b"demo/a", where)
    assert paused(now) is paused(record)
    assert now[:84] == record[:84]
    assert driver.engine._parts.waiting.unsaid == counts


def test_what_recurs_keeps_its_last_fires() -> None:
    driver = keyed(OLD)
    asked(driver, kind="EVERY", at=None, interval_ms=HOUR)
    for hour in range(1, 9):
        driver.step(T0 + hour * HOUR)
    before = kept(driver)
    let(driver, NEW, OLD)
    begin(driver, "REKEY")
    advance(driver, now_ms=T0 + 8 * HOUR + 1)
    assert last_fires(kept(driver)) == last_fires(before) != []
    assert keys_of(driver) == {NEWEST}
    let(driver, NEW)
    assert values(driver, T0 + 9 * HOUR) == [SECRET]


def test_the_same_request_changes_nothing_behind_it() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, NEW, OLD)
    begin(driver, "REKEY")
    advance(driver)
    assert asked(driver) == (["UNCHANGED"], [])
    record = kept(driver)
    assert same_definition(record, with_encrypted(record, decode_pending(record).payload or b""))


def test_it_waits_for_the_key_that_it_names() -> None:
    driver = keyed(OLD)
    asked(driver)
    begin(driver, "REKEY", key=NEWEST)
    assert advance(driver) == []
    # All can read the new key by now, and it is not yet the first.
    let(driver, OLD, NEW)
    assert advance(driver) == []
    let(driver)
    assert advance(driver) == []
    assert row(driver).state == RUNNING
    let(driver, NEW, OLD)
    assert [each.schedule_id for each in advance(driver)] == ["a"]
    assert keys_of(driver) == {NEWEST}


def test_what_was_asked_for_behind_the_job_under_the_old_key_is_its_business() -> None:
    driver = keyed(OLD)
    begin(driver, "REKEY", key=NEWEST)
    asked(driver)
    let(driver, NEW, OLD)
    assert finish(driver) == ["UPDATED a"]
    assert keys_of(driver) == {NEWEST}


def test_what_cannot_be_decrypted_is_refused_and_stays() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, NEW)
    asked(driver, schedule_id="b")
    before = kept(driver)
    begin(driver, "REKEY")
    (told,) = [each for each in advance(driver) if each.schedule_id == "a"]
    assert (told.outcome, told.code) == ("REJECTED", "unreadable_schedule")
    assert "put its line back" in (told.reason or "")
    assert kept(driver) == before
    assert row(driver).refusals == {"unreadable_schedule": 1}


@pytest.mark.parametrize(
    ("ref", "code"), [(None, "bad_bulk"), ("env:BELFRY_SECRET_DEMO", "payload_key_missing")]
)
def test_without_a_key_no_job_begins(ref: str | None, code: str) -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, ref=ref)
    driver.ask(action="BULK", schedule_id="job", bulk=BulkSpec(action="REKEY").text())
    step = driver.step(T0, fire=False)
    assert (step.outcomes, step.codes) == (["REJECTED"], [code])
    driver.ask(action="BULK", schedule_id="job", bulk=BulkSpec(action="PAUSE").text())
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED"]


@pytest.mark.parametrize(
    "said", [{"action": "CANCEL", "key": NEWEST}, {"action": "REKEY", "key": "newest"}]
)
def test_a_key_is_the_id_of_one(said: dict[str, Any]) -> None:
    found = read_bulk(BulkSpec(**said).text())
    assert isinstance(found, Rejection)
    assert "key" in found.reason


def test_a_preview_counts_what_is_not_under_the_key() -> None:
    driver = keyed(OLD)
    asked(driver)
    asked(driver, schedule_id="none", payload=None)
    let(driver, NEW, OLD)
    asked(driver, schedule_id="b")
    wanted = wanted_by(b"demo", BulkSpec(action="REKEY"))

    def counted(key: str | None) -> list[str]:
        also = partial(is_under_another, key=key)
        return preview(driver.rows, wanted, None, 100, also=also).sample

    assert counted(NEWEST) == ["a"]
    assert counted(KeyRing("demo", [OLD]).newest) == ["b"]
    assert counted(None) == ["a", "b"]
    begin(driver, "REKEY")
    advance(driver)
    assert counted(NEWEST) == []


def test_a_payload_that_lies_elsewhere_keeps_its_key_and_is_told_of() -> None:
    driver = keyed(OLD)
    let(driver, OLD, claim_check_over_bytes=3)
    driver.ask(payload=b"large", at=T0 + HOUR)
    (stored,) = driver.step(T0).effects.objects.values()
    asked(driver, schedule_id="small", payload=b"s")
    # Who sends a claim of its own has it encrypted by no worker.
    asked(driver, schedule_id="own", payload=None, headers=[{"name": CLAIM, "value": b"00"}])
    let(driver, NEW, OLD, claim_check_over_bytes=3)
    begin(driver, "REKEY")
    advance(driver)
    rows = rows_of(driver).values()
    assert [each.name for each in rows if is_sealed_elsewhere(each)] == [b"demo/a"]
    whole = next(each for each in rows if is_sealed_elsewhere(each))
    given = [(name.encode(), value) for name, value in decode_headers(whole.headers)]
    sealed = [each for each in given if each[0] == ENCRYPTED.encode()]
    assert is_sealed_elsewhere(whole._replace(headers=encode_headers(sealed)))
    # The name of that header in the value of another one seals nothing.
    named: list[tuple[bytes, bytes | None]] = [(CLAIM.encode(), ENCRYPTED.encode())]
    assert not is_sealed_elsewhere(whole._replace(headers=encode_headers(named)))
    assert KeyRing("demo", [OLD]).decrypt(b"demo/a", stored) == b"large"
    assert not [each for each in rows if is_under_another(each, NEWEST)]


@pytest.mark.parametrize("seed", range(20))
def test_kills_at_any_point_repeat_nothing_and_leave_nothing_out(seed: int) -> None:
    """Steps of all sizes, rolled back or committed, and owners that fold the changelog anew."""
    random = Random(seed)
    driver = keyed(OLD)
    names = {f"s{number}" for number in range(30)}
    for name in sorted(names):
        at = T0 + random.choice((HOUR, HOUR, 2 * HOUR))
        asked(driver, schedule_id=name, at=at, payload=name.encode())
        if random.random() < 0.2:
            asked(driver, schedule_id=name, action="PAUSE")
    let(driver, NEW, OLD)
    begin(driver, "REKEY", per_second=FAST)
    told: Counter[str] = Counter()
    now_ms = T0 + 1_000
    while driver.engine.jobs.under_way:
        now_ms += 1_000
        commit = random.random() < 0.6
        budget = random.choice((Budget(3, 2), Budget(10, 1), MUCH._replace(changes=5)))
        found = advance(driver, budget, now_ms, commit=commit)
        told.update(each.schedule_id for each in found if commit)
        if random.random() < 0.3:
            rows = MemoryMap()
            replay = Replay(ScheduleStore(rows))
            replay.apply(driver.changelog, range(len(driver.changelog)), now_ms)
            replay.finish(now_ms)
            driver.start(rows)
    assert told == Counter(names)
    assert keys_of(driver) == {NEWEST}
    let(driver, NEW)
    for key, each in rows_of(driver).items():
        assert KeyRing("demo", [NEW]).decrypt(key, each.payload or b"") == each.schedule_id
