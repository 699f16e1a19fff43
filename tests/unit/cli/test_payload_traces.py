"""What is left of a tenant's payloads is counted, and nothing is taken for unreadable in error."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.cli.payload_traces import Left, PayloadTraces, Trace
from belfry.client.encryption import KEY
from belfry.client.fired_record import FiredRecord
from belfry.client.key_ring import KeyRing
from belfry.store.layout.aside import Waits, aside_key, encode_aside
from belfry.store.layout.groups import held_key
from belfry.wire.record import Headers, SourceRecord
from tests.acceptance.harness.requests import request
from tests.unit.engine.driver import Driver
from tests.unit.engine.test_encrypted_payloads import NEW, OLD, SECRET, asked, kept, keyed

NAME: Final = b"demo/a"
OLD_ID: Final = KeyRing("demo", [OLD]).newest


def traces(*secrets: bytes, ids: tuple[str, ...] = (), writer: Any = None) -> PayloadTraces:
    ring = KeyRing("demo", secrets) if secrets else None
    return PayloadTraces("demo", ring, lambda _: writer, frozenset(ids))


def row(**fields: Any) -> bytes:
    """The row of a schedule whose tenant has a key."""
    driver = keyed(OLD)
    asked(driver, **fields)
    return kept(driver)


def plain_row(name: bytes = NAME, **fields: Any) -> bytes:
    driver = Driver()
    asked(driver, **fields)
    return kept(driver, name)


def left(found: PayloadTraces) -> list[tuple[Left, str]]:
    return [(trace.left, trace.key) for trace in found.found]


@pytest.mark.parametrize(
    ("secrets", "sort"),
    [((), Left.ENCRYPTED), ((NEW,), Left.ENCRYPTED), ((NEW, OLD), Left.DECRYPTED)],
)
def test_a_row_is_readable_while_a_secret_makes_its_key(
    secrets: tuple[bytes, ...], sort: Left
) -> None:
    found = traces(*secrets)
    found.row("changelog", NAME, row())
    assert found.found == {Trace("changelog", sort, OLD_ID): 1}


def test_a_row_of_the_time_before_keys_is_readable() -> None:
    found = traces()
    found.row("changelog", NAME, plain_row())
    assert left(found) == [(Left.AS_SENT, "")]
    assert found.count(Left.AS_SENT) == 1


def test_rows_of_others_and_rows_without_a_payload_are_passed_over() -> None:
    found = traces(OLD)
    found.row("changelog", b"demo2/a", plain_row())
    found.row("changelog", b"other/a", row())
    found.row("changelog", NAME, None)
    found.row("changelog", NAME, row(payload=b""))
    found.row("changelog", NAME, plain_row(payload=None))
    assert not found.found


def test_what_a_client_has_encrypted_is_told_apart() -> None:
    headers = [{"name": KEY, "value": b"demo/k1"}]
    found = traces()
    found.row("changelog", NAME, plain_row(headers=headers))
    found.request("schedules", avro(payload=SECRET, headers=headers))
    found.event(event(b"sealed", [(KEY, b"demo/k1")]))
    assert {trace.left for trace in found.found} == {Left.BY_CLIENT}
    assert found.count(Left.BY_CLIENT) == 3


@pytest.mark.parametrize("named", [b"other/k1", b"demo", b"demo/x", b"yes"])
def test_a_header_that_names_no_key_of_the_tenant_encrypts_nothing(named: bytes) -> None:
    found = traces()
    found.event(event(SECRET, [(KEY, named)]))
    assert left(found) == [(Left.AS_SENT, "")]


def test_what_lies_elsewhere_cannot_be_told_without_its_store() -> None:
    claim = ("claim-check-sha256", b"5f" * 32)
    headers = [{"name": claim[0], "value": claim[1]}]
    found = traces()
    found.row("changelog", NAME, plain_row(payload=b"", headers=headers))
    found.request("schedules", avro(payload=b"", headers=headers))
    found.event(event(b"", [claim]))
    found.event(event(b"", [claim, (KEY, b"demo/k1")]))
    assert not found.found
    found.no_store("store")
    assert found.found == {Trace("store", Left.UNKNOWN, ""): 3}


def test_a_row_of_a_later_release_cannot_be_told() -> None:
    found = traces(OLD)
    later = bytearray(row())
    later[0] = 200
    found.row("changelog", NAME, bytes(later))
    assert left(found) == [(Left.UNKNOWN, "")]


def avro(tenant: str = "demo", headers: Any = (), **fields: Any) -> SourceRecord:
    value = request(tenant, "a", at=5, headers=list(headers), **fields)
    return 0, 0, tenant.encode(), value, None


def by_headers(*pairs: tuple[str, bytes], value: bytes | None = SECRET) -> SourceRecord:
    return 0, 0, None, value, list(pairs)


NAMED: Final = ("belfry-tenant", b"demo"), ("belfry-id", b"a")
IN: Final = ("belfry-in", b"5m")


FIRED: Final = (("belfry-fire-id", b"0f"), ("belfry-schedule-tenant", b"demo"))


@pytest.mark.parametrize(
    ("record", "sorts"),
    [
        (avro(payload=SECRET), [Left.AS_SENT]),
        (avro(payload=None), []),
        (avro(action="CANCEL"), []),
        (avro("other", payload=b"for demo"), []),
        (by_headers(*NAMED, IN), [Left.AS_SENT]),
        (by_headers(*NAMED, IN, value=None), []),
        # Refused, and its payload is there all the same.
        (by_headers(*NAMED, ("belfry-cron", b"no cron")), [Left.AS_SENT]),
        (by_headers(*NAMED, IN, ("belfry-error-code", b"bad_cron")), [Left.AS_SENT]),
        (by_headers(("belfry-tenant", b"other"), ("belfry-id", b"demo"), IN), []),
        # A record that was put back, as a request and as a dead letter.
        (by_headers(*FIRED, ("belfry-retry", b"")), [Left.AS_SENT]),
        (by_headers(*FIRED, ("belfry-retry", b"attempts=1")), [Left.AS_SENT]),
        # Whose it is can only be read by a schema that nobody has.
        ((0, 0, None, b"\0\0\0\0\7 demo", None), [Left.UNKNOWN]),
        ((0, 0, None, b"\0\0\0\0\7 other", None), []),
        ((0, 0, b"demo", b"no request", None), [Left.UNKNOWN]),
        ((0, 0, b"demo/a", None, None), []),
    ],
)
def test_requests(record: SourceRecord, sorts: list[Left]) -> None:
    found = traces()
    found.request("schedules", record)
    assert [sort for sort, _ in left(found)] == sorts


def test_all_of_a_tenants_own_topic_is_its_own() -> None:
    found = traces()
    found.request("schedules.demo", (0, 0, None, b"whatever", None), own=True)
    found.request("schedules.demo", by_headers(("belfry-id", b"a"), IN), own=True)
    assert sorted(left(found)) == [(Left.AS_SENT, ""), (Left.UNKNOWN, "")]


def test_a_request_that_waits_for_its_schema_lies_in_the_changelog_as_it_was_sent() -> None:
    found = traces(OLD)
    waits = encode_aside(Waits(b"demo", by_headers(*NAMED, IN), appended=True))
    found.row("changelog", aside_key(7), waits)
    found.row("changelog", held_key(3, 7), waits)
    assert found.found == {Trace("changelog", Left.AS_SENT, ""): 2}


def event(value: bytes | None, headers: Headers, topic: str = "belfry.fired") -> FiredRecord:
    told: Headers = [*headers, ("belfry-schedule-tenant", b"demo")]
    return FiredRecord(topic, 0, 0, None, b"demo/k", value, told)


def test_events_and_deliveries() -> None:
    found = traces()
    found.event(event(SECRET, []))
    found.event(event(SECRET, [], "belfry.fired.demo"))
    found.event(event(None, []))
    found.event(FiredRecord("belfry.fired.other", 0, 0, None, b"k", SECRET, []))
    found.delivery(event(SECRET, [], "belfry.deliveries"))
    found.delivery(FiredRecord("belfry.deliveries", 0, 0, None, b"other/k", SECRET, []))
    assert {trace.where for trace in found.found} == {
        "belfry.fired", "belfry.fired.demo", "belfry.deliveries",
    }  # fmt: skip
    assert found.count(Left.AS_SENT) == found.found.total() == 3


def test_an_output_topic_that_is_called_like_another_tenants_may_be_its_own() -> None:
    """A policy may name `team.fired.cards`, whose name tells of no tenant."""
    found = traces()
    found.event(event(SECRET, [], "team.fired.cards"))
    assert found.found == {Trace("team.fired.cards", Left.AS_SENT, ""): 1}


def test_retries_of_deliveries_hold_events_of_others() -> None:
    """They are schedules of belfry's own tenant, of events that fired before there were keys."""
    found = traces(OLD)
    for whose in ("demo", "other"):
        fields = {"key": f"{whose}/a".encode(), "payload": b"of demo"}
        found.request("schedules", avro("belfry-deliveries", **fields))
        retry = plain_row(tenant="belfry-deliveries", name=b"belfry-deliveries/a", **fields)
        found.row("changelog", b"belfry-deliveries/a", retry)
    assert found.found == {
        Trace("schedules", Left.AS_SENT, ""): 1,
        Trace("changelog", Left.AS_SENT, ""): 1,
    }


@pytest.mark.parametrize(
    ("secrets", "ids", "known", "sort"),
    [
        ((), (), False, Left.UNKNOWN),
        ((), (), True, Left.ENCRYPTED),
        ((), (OLD_ID,), False, Left.ENCRYPTED),
        ((OLD,), (), False, Left.DECRYPTED),
        ((NEW,), (), False, Left.UNKNOWN),
    ],
)
def test_a_stored_object_is_encrypted_where_its_key_is_known(
    secrets: tuple[bytes, ...], ids: tuple[str, ...], known: bool, sort: Left
) -> None:
    """Bytes that look like a key of belfry's may be the begin of what nobody encrypted."""
    found = traces(*secrets, ids=ids)
    if known:
        found.row("changelog", NAME, row())
    found.stored("store", KeyRing("demo", [OLD]).encrypt(NAME, SECRET)[:9])
    assert [each for place, each, _ in found.found if place == "store"] == [sort]
    found.stored("plain", b"card 4711"[:9])
    assert [each for place, each, _ in found.found if place == "plain"] == [Left.AS_SENT]
