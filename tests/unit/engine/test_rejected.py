"""Refused records are kept as received, with a reason; each code can be reached by a record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.engine.calendars import MOST_OF_TENANT
from belfry.engine.dependents import MOST_WAITING
from belfry.engine.kept_jobs import MOST_UNDER_WAY
from belfry.schedules.instants import format_instant
from belfry.schedules.rejections import CODES, Rejection
from belfry.store.layout.pending import MOST_NUMBER, decode_pending, encode_pending
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing
from belfry.wire.moves import MOVE, MoveRecord, encode_move
from belfry.wire.record import Headers, Origin, origin_headers
from belfry.wire.requests import RequestReader
from belfry.wire.unread import CUT, unread
from tests.unit.engine.driver import T0, Driver, request
from tests.unit.engine.unreadable import RECURSIVE, filed, newer_rule, pending

BODY = catalogue.encode("ScheduleRequest", {"tenant": "demo", "schedule_id": "a", "at": T0 + 5})
STRAY = origin_headers(Origin("belfry.schedules", 2, 7, T0 - 1, rerouted=False))
LOST: Headers = [*STRAY, ("belfry-origin-retries", b"1000")]
BY_HEADERS: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"a")]
Given = tuple[bytes | None, Headers | None]


def avro(**fields: Any) -> Given:
    return request(**fields), None


def by_headers(*more: tuple[str, bytes | None]) -> Given:
    return b"value", [*BY_HEADERS, *more]


DAYS = '{"weekend": ["SUN"]}'
JOB = '{"action": "CANCEL", "prefix": "none"}'
REACHED: dict[str, Given] = {
    "not_a_request": (b"{}", None),
    "truncated": (request(at=T0)[:-3], None),
    "unknown_schema_id": (framing.prefix(404) + BODY, None),
    "unknown_schema_fingerprint": (b"\xc3\x01" + b"12345678" + BODY, None),
    "schema_not_a_request": (framing.prefix(1) + b"\x02", None),
    "schema_unsafe": (framing.prefix(2) + b"\x00", None),
    "request_too_large": (request(payload=b"x" * 1_100_000), None),
    "unreadable_batch": (None, [unread("unreadable_batch", "It cannot be unpacked.")]),
    "bad_move": (encode_move(MoveRecord(MOVE, 3, 0)), None),
    "no_tenant": avro(tenant=""),
    "bad_tenant": avro(tenant="a b"),
    "bad_schedule_id": avro(schedule_id="\n"),
    "bad_header": by_headers(("belfry-at", b"tomorrow")),
    "unknown_header": by_headers(("belfry-at", b"1800000000000"), ("belfry-tz", b"UTC")),
    "bad_request_id": avro(at=T0, request_id="r" * 256),
    "unknown_action": avro(action="UNKNOWN"),
    "unknown_kind": avro(kind="UNKNOWN"),
    "bad_fire_id": avro(action="ACK"),
    "no_instant": avro(),
    "several_instants": by_headers(("belfry-at", b"1800000000000"), ("belfry-in", b"5m")),
    "retries_exhausted": by_headers(("belfry-retry", b"attempts=2"), ("retry-attempt", b"1")),
    "instant_in_seconds": avro(at=1_800_000_000),
    "instant_too_far": avro(at=T0 * 1000),
    "bad_target": avro(at=T0, http_targets=[{"url": "http://user@h/"}]),
    "target_not_allowed": avro(tenant="strict", at=T0, http_targets=[{"url": "http://h/"}]),
    "bad_delay": avro(kind="AFTER", delay_ms=-1),
    "bad_max_wait": avro(kind="AFTER", delay_ms=7, max_wait_ms=6),
    "bad_after_ack": avro(kind="AFTER_ACK", after_ack="a"),
    "unknown_awaited": avro(kind="AFTER_ACK", after_ack="nobody"),
    "circular_wait": avro(kind="AFTER_ACK", after_ack="ring", latest_at=T0 + 9),
    "too_many_waiting": avro(kind="AFTER_ACK", after_ack="star", latest_at=T0 + 9),
    "wait_of_spread_tenant": avro(tenant="wide", kind="AFTER_ACK", after_ack="b"),
    "bad_throttle": avro(at=T0, throttle_ms=0),
    "bad_concurrency": avro(at=T0, group="g", concurrency=0),
    "bad_priority": avro(at=T0, priority=10),
    "bad_jitter": avro(at=T0, jitter_ms=-1),
    "bad_interval": avro(kind="EVERY", interval_ms=0),
    "bad_cron": avro(kind="CRON", cron="61 * * * *"),
    "bad_rule": avro(kind="RRULE", rrule="FREQ=HOURLI", start_at=T0),
    "bad_timezone": avro(kind="CRON", cron="@daily", timezone="Paris"),
    "bad_window": avro(kind="EVERY", interval_ms=1, start_at=T0 + 1, end_at=T0),
    "bad_max_fires": avro(kind="EVERY", interval_ms=1, max_fires=0),
    "bad_max_lateness": avro(at=T0, max_lateness_ms=-1),
    "unknown_misfire": avro(at=T0, misfire="UNKNOWN"),
    "unknown_overlap": avro(kind="EVERY", interval_ms=1, overlap="UNKNOWN"),
    "bad_overlap": avro(kind="EVERY", interval_ms=1, overlap="QUEUE_ALL", misfire="SKIP"),
    "no_group": avro(at=T0, serial=True),
    "bad_ack_timeout": avro(at=T0, ack_timeout_ms=0),
    "bad_standing": avro(at=T0, standing={"next_at": T0, "occurrence": -1}),
    "never_fires": avro(kind="CRON", cron="@daily", end_at=T0 - 1),
    "bad_calendar": avro(action="CALENDAR", schedule_id="de", days_off="{"),
    "unknown_calendar": avro(kind="CRON", cron="@daily", calendar="none"),
    "too_many_calendars": avro(action="CALENDAR", schedule_id="one-more", days_off=DAYS),
    "bad_bulk": avro(action="BULK", bulk="{}"),
    "too_many_jobs": avro(action="BULK", schedule_id="one more", bulk=JOB),
    "bad_fields": avro(at=T0, group="g" * 256),
    "payload_too_large": avro(at=T0, payload=b"x" * 1_000_000),
    "misrouted": (request(tenant="t2", at=T0), LOST),
    "payload_away": avro(action="TRIGGER", schedule_id="filed"),
    "payload_key_missing": avro(tenant="keyless", at=T0),
    "payload_not_stored": avro(tenant="claims", at=T0, payload=b"12"),
    "tenant_held": avro(tenant="held", action="TRIGGER"),
    "unreadable_schedule": avro(action="TRIGGER", schedule_id="newer"),
    "version_used_up": avro(schedule_id="old", at=T0 + 9),
    "tenant_collides": avro(tenant="a_b", at=T0),
    "too_many_requests": avro(tenant="slow", at=T0),
    "too_many_pending": avro(tenant="full", at=T0),
    "group_of_spread_tenant": avro(tenant="wide", at=T0, group="g"),
    "unknown_tenant": avro(tenant="unknown", at=T0),
    "tenant_removed": avro(tenant="removed", at=T0),
    "too_many_tenants": avro(tenant="crowd", at=T0),
    "unsigned": avro(tenant="signs", at=T0),
    "bad_signature": (request(tenant="signs", at=T0), [("belfry-signature", b"00")]),
}
# What each of them says, word by word: senders read it.
SAID: Final = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))
RELEASES: Final = r"(?<=IANA time zone of release )\w+|(?<=ScheduleRequest of schema )\w+"
# No bytes lead there by themselves: the worker's resolver says one, and a fault brings the other.
BY_NO_BYTES = {"schema_unavailable", "check_failed"}


def driver_of_all() -> Driver:
    """A partition that `demo` and `held` are at home in, with what the codes need."""
    driver = Driver(partitions=1)
    reader: RequestReader = driver.engine._parts.batches._reader
    reader.learn(1, {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "int"}]})
    reader.learn(2, RECURSIVE)
    reader.refuse(404, Rejection("unknown_schema_id", "There is none."))
    driver.tenants.note_topics(["belfry.fired.a.b"])
    driver.ask(tenant="held", at=T0 + 5)
    newer = pending(newer_rule(), "newer", T0 + 5, seq=99)
    driver.engine._store.keep_in_timeline(b"demo/newer", newer, T0 + 5, 99)
    driver.engine._store.keep_in_timeline(b"demo/filed", filed(T0 + 5, 97), T0 + 5, 97)
    row = decode_pending(pending(b"", "old", T0 + 5, seq=98, kind=0))
    old = encode_pending(row._replace(version=MOST_NUMBER))
    driver.engine._store.keep_in_timeline(b"demo/old", old, T0 + 5, 98)
    for number in range(MOST_UNDER_WAY):
        driver.ask(action="BULK", schedule_id=f"job {number}", bulk=JOB)
    for number in range(MOST_OF_TENANT):
        driver.ask(action="CALENDAR", schedule_id=f"c{number}", days_off=DAYS)
    waits: dict[str, Any] = {"kind": "AFTER_ACK", "latest_at": T0 + 9_999}
    driver.ask(schedule_id="ring", after_ack="a", **waits)
    for number in range(MOST_WAITING):
        driver.ask(schedule_id=f"w{number}", after_ack="star", **waits)
    driver.step(T0)
    driver.tenants.hold("held", "its topic is missing")
    driver.note("crowd", crowded_out=True)
    driver.tenants.store_problem = "as the shell says"
    for name, code in (("unknown", "unknown_tenant"), ("removed", "tenant_removed")):
        refused = Rejection(code, "as the shell says")
        driver.tenants.follow(driver.tenants.defaults(name)._replace(refused=refused))
    for policy in (
        TenantPolicy("slow", max_requests_per_second=0),
        TenantPolicy("full", max_pending=0),
        TenantPolicy("wide", spread=2),
        TenantPolicy("signs", signing_secret_ref="env:X"),
        TenantPolicy("keyless", payload_key_ref="env:X"),
        TenantPolicy("claims", claim_check_over_bytes=1),
        TenantPolicy("strict", allowed_hosts=("hooks.example.com",)),
    ):
        driver.tenants.follow(EffectivePolicy(policy))
    return driver


def test_every_code_is_reached_here() -> None:
    assert REACHED.keys() | BY_NO_BYTES == CODES.keys()


@pytest.mark.parametrize("code", REACHED)
def test_each_code_can_be_reached(code: str) -> None:
    value, headers = REACHED[code]
    driver = driver_of_all()
    if code == "misrouted":
        driver.place = driver.place._replace(homes=type(driver.place.homes)(4))
        tenants = ("t1", "t2", "t3", "t4", "t5", "t6")
        away = next(each for each in tenants if driver.place.homes.of(each))
        value = request(tenant=away, at=T0)
        driver.start(driver.rows)
    offset = driver.send(value, key=b"some key", headers=headers)
    step = driver.step(T0)
    assert step.codes == [code]
    assert step.effects.rejections == {code: 1}
    assert step.effects.outcomes == {"REJECTED": 1}
    (kept,) = step.effects.rejected
    origin = (2, 7) if headers == LOST else (0, offset)
    added = {name: given for name, given in kept.headers if name.startswith("belfry-error-")}
    said = (added.pop("belfry-error-reason") or b"").decode()
    assert re.sub(RELEASES, "…", said) == SAID[code]
    added.pop("belfry-error-cut", None)
    # A tenant finds its own, and only what can be read says whose it is.
    (told,) = [each.tenant for each in step.effects.lifecycle] or [""]
    assert added.pop("belfry-error-tenant", b"") == told.encode()
    assert added == {
        "belfry-error-code": code.encode(),
        "belfry-error-topic": b"belfry.schedules",
        "belfry-error-partition": b"%d" % origin[0],
        "belfry-error-offset": b"%d" % origin[1],
        "belfry-error-at": format_instant(T0 - (headers == LOST)).encode(),
    }


@pytest.mark.parametrize(
    "code", sorted(REACHED.keys() - {"request_too_large", "payload_too_large"})
)
def test_what_is_refused_is_kept_verbatim(code: str) -> None:
    value, headers = REACHED[code]
    given: Headers = [*(headers or []), ("mine", b"1"), ("mine", None), ("null", None)]
    refusing = Driver()
    refusing.ask(tenant="a.b", at=T0 + 5)
    refusing.step(T0)
    refusing.tenants.hold("held", "its topic is missing")
    refusing.send(value, key=b"\xff key", headers=given)
    for kept in refusing.step(T0).effects.rejected:
        assert (kept.key, kept.value, kept.headers[: len(given)]) == (b"\xff key", value, given)


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", b"v" * 1_000_000, None),
        (b"k" * 1_000_000, b"v", None),
        (b"k", b"v", [("h", b"x" * 1_000_000)]),
        (b"k", None, [(f"{n}" + "é" * 50, b"x" * 1000) for n in range(1000)]),
        (b"k", b"v", [("belfry-tenant", b"t" * 1_000_000), ("belfry-id", b"i")]),
        (b"k", b"v", [*BY_HEADERS, ("belfry-action", b"\x01" * 1_000_000)]),
        (b"k", b"v", [*BY_HEADERS, *[("belfry-in", b"5m")] * 60_000]),
        (b"k", b"v", [*BY_HEADERS, ("belfry-at", b"9" * 1_000_000)]),
        (b"k", b"v", [*BY_HEADERS, ("belfry-request-id", b"r" * 1_000_000), ("belfry-in", b"1")]),
        (b"k", b"{}", [("belfry-origin-topic", b"t" * 1_000_000), *STRAY[1:]]),
    ],
    ids=["value", "key", "header", "headers", "tenant", "action", "repeats", "at", "id", "origin"],
)
def test_whatever_is_refused_fits_the_topics(
    key: bytes, value: bytes | None, headers: Headers | None
) -> None:
    driver = Driver()
    driver.send(value, key, headers)
    (kept,) = driver.step(T0).effects.rejected
    size = len(kept.key or b"") + len(kept.value or b"")
    size += sum(len(name.encode()) + len(given or b"") + 10 for name, given in kept.headers)
    assert size <= 1_000_000
    assert "belfry-error-cut" in dict(kept.headers)


def test_a_step_keeps_a_megabyte_of_refused_records_whole_and_the_beginning_of_the_others() -> None:
    driver = Driver()
    for _ in range(20):
        driver.send(b"v" * 400_000)
    driver.send(b"v" * 5_000)
    kept = driver.step(T0).effects.rejected
    whole = [len(each.value or b"") for each in kept if CUT not in dict(each.headers)]
    assert whole == [400_000, 400_000, 5_000]
    assert sum(len(each.value or b"") for each in kept) < 1_200_000
    assert dict(kept[-2].headers)["belfry-error-cut"] == b"cut from 400000 bytes"


def test_lifecycle_records_of_refused_requests_are_short() -> None:
    driver = Driver()
    driver.send(b"v", headers=[*BY_HEADERS, ("belfry-action", b"\x01" * 900_000)])
    driver.ask(tenant="x" * 900_000, schedule_id="i" * 100_000, request_id="r" * 10_000)
    driver.ask(schedule_id="i" * 900_000)
    topic: Headers = [("belfry-origin-topic", b"t" * 900_000), *STRAY[1:]]
    driver.send(request(action="CANCEL"), headers=topic)
    told = driver.step(T0).effects.lifecycle
    assert len(told) == 4
    assert all(len(repr(each)) < 20_000 for each in told)


@pytest.mark.parametrize("level", Level)
def test_a_refusal_is_told_to_every_tenant_that_is_known(level: Level) -> None:
    driver = Driver(level)
    driver.ask(at=1)
    driver.send(b"{}")
    (told,) = driver.step(T0).effects.lifecycle
    assert (told.tenant, told.schedule_id, told.code) == ("demo", "a", "instant_in_seconds")


def test_a_refused_replacement_leaves_the_schedule_alone() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, payload=b"good")
    driver.ask(at=T0 + 5, payload=b"x" * 1_000_000)
    driver.step(T0)
    (shot,) = driver.step(T0 + 5).shots
    assert shot.value == b"good"


def test_a_tenants_own_limit_counts() -> None:
    driver = Driver()
    driver.note(max_record_bytes=2_000)
    for size in (1_000, 2_000):
        driver.ask(schedule_id=f"{size}", at=T0 + 5, payload=b"x" * size)
    step = driver.step(T0)
    assert step.outcomes == ["ACCEPTED", "REJECTED"]
    assert step.codes == ["payload_too_large"]


ID = ("belfry-request-id", b"r")
AT = ("belfry-at", b"1900000000000")
REFUSED_HEADERS: dict[str, tuple[str, Headers]] = {
    "no instant": ("no_instant", [*BY_HEADERS, ID]),
    "bad instant": ("bad_header", [*BY_HEADERS, ID, ("belfry-at", b"tomorrow")]),
    "bad delay": ("bad_header", [*BY_HEADERS, ("belfry-in", b"soon"), ID]),
    "two instants": ("several_instants", [*BY_HEADERS, AT, ("belfry-in", b"5m"), ID]),
    "unreadable group": ("bad_header", [ID, *BY_HEADERS, AT, ("belfry-group", b"\xff")]),
    "unknown header": ("unknown_header", [*BY_HEADERS, AT, ("belfry-tz", b"UTC"), ID]),
    "unknown header first": ("unknown_header", [("belfry-tz", b"UTC"), ID, *BY_HEADERS, AT]),
    "no schedule": ("bad_schedule_id", [BY_HEADERS[0], AT, ID]),
    "no tenant": ("no_tenant", [BY_HEADERS[1], AT, ID]),
    "nothing else": ("no_tenant", [ID]),
    "bad tenant": ("bad_tenant", [("belfry-tenant", b"a b"), BY_HEADERS[1], AT, ID]),
    "unreadable tenant": ("bad_header", [("belfry-tenant", b"\xff"), BY_HEADERS[1], AT, ID]),
    "bad schedule": ("bad_schedule_id", [BY_HEADERS[0], ("belfry-id", b"\n"), AT, ID]),
    "long schedule": ("bad_schedule_id", [BY_HEADERS[0], ("belfry-id", b"i" * 999), AT, ID]),
    "bad action": ("unknown_action", [*BY_HEADERS, ("belfry-action", b"EXPLODE"), ID]),
    "bad cron": ("bad_cron", [*BY_HEADERS, ("belfry-cron", b"x"), ID]),
    "bad fire": ("bad_fire_id", [*BY_HEADERS, ("belfry-action", b"ack"), ID]),
    "unreadable fire": (
        "bad_header",
        [*BY_HEADERS, ("belfry-action", b"ack"), ("belfry-fire-id", b"\xff"), ID],
    ),
}


@pytest.mark.parametrize("case", REFUSED_HEADERS)
@pytest.mark.parametrize("level", Level)
def test_refused_headers_with_an_id_get_exactly_one_record(case: str, level: Level) -> None:
    code, headers = REFUSED_HEADERS[case]
    driver = Driver(level)
    offset = driver.send(b"value", b"key", headers)
    step = driver.step(T0)
    (told,) = step.effects.lifecycle
    assert (step.codes, told.code, str(told.outcome)) == ([code], code, "REJECTED")
    assert (told.request_id, told.source_offset) == ("r", offset)


@pytest.mark.parametrize(
    ("given", "shown"), [(b"r" * 999, "r" * 255), (b"\xff", "\ufffd"), (b"", "")]
)
def test_an_id_that_is_not_allowed_is_told_as_far_as_it_can_be(given: bytes, shown: str) -> None:
    driver = Driver(Level.FAILURES)
    driver.send(b"v", None, [*BY_HEADERS, AT, ("belfry-request-id", given)])
    (told,) = driver.step(T0).effects.lifecycle
    assert (str(told.outcome), told.request_id) == ("REJECTED", shown)


@pytest.mark.parametrize(
    "fields",
    [
        {"tenant": "", "at": T0},
        {"tenant": "a b", "at": T0},
        {"tenant": "t" * 999, "at": T0},
        {"schedule_id": "", "at": T0},
        {"schedule_id": "i" * 999, "at": T0},
        {"action": "UNKNOWN"},
        {"kind": "UNKNOWN"},
        {},
        {"at": T0, "group": ""},
        {"at": T0, "headers": [{"name": "n", "value": None}] * 257},
    ],
)
@pytest.mark.parametrize("request_id", ["r", "", "r" * 999])
def test_every_decoded_request_with_an_id_gets_exactly_one_record(
    fields: dict[str, Any], request_id: str
) -> None:
    driver = Driver(Level.FAILURES)
    driver.ask(**fields, request_id=request_id)
    (told,) = driver.step(T0).effects.lifecycle
    assert (str(told.outcome), told.request_id) == ("REJECTED", request_id[:255])


def test_an_unknown_header_is_refused_also_beside_an_avro_value() -> None:
    driver = Driver()
    driver.send(request(at=T0 + 5), None, [("belfry-timezon", b"UTC")])
    driver.send(None, b"demo/a", [("belfry-acton", b"UPSERT")])
    driver.send(request(at=T0 + 5), None, [("mine", b"1"), ("belfry-fire-id", b"1")])
    step = driver.step(T0)
    assert step.codes == ["unknown_header", "unknown_header"]
    assert step.effects.outcomes == {"REJECTED": 2, "ACCEPTED": 1}


def test_an_avro_request_with_an_unknown_header_has_its_record() -> None:
    driver = Driver(Level.FAILURES)
    driver.send(request(at=T0 + 5, request_id="r"), None, [("belfry-timezon", b"UTC")])
    (told,) = driver.step(T0).effects.lifecycle
    assert (told.request_id, told.code) == ("r", "unknown_header")


@pytest.mark.parametrize("request_id", ["", "r" * 2_000])
def test_no_answer_is_remembered_under_an_id_that_is_not_allowed(request_id: str) -> None:
    """Whatever else is wrong with the request: the key of a row has its bound."""
    driver = Driver()
    driver.ask(schedule_id="\n", at=T0 + 5, request_id=request_id)
    step = driver.step(T0)
    assert step.codes == ["bad_schedule_id"]
    assert max(map(len, step.effects.rows)) < 100
