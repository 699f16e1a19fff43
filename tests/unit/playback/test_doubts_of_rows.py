"""Which doubts there are about a step: by its rows, its requests, and policies of tenants."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.effects import Effects
from belfry.playback.doubts import (
    AWAY,
    KEYS,
    LAST_FIRES,
    LATE,
    SCHEMAS,
    UNREMEMBERED,
    WORKED,
    doubts_about,
    is_named,
    is_sure,
)
from belfry.playback.treatment import PolicyAt
from belfry.playback.tried import Tried
from belfry.store.layout.calendars import CALENDAR_PREFIX
from belfry.store.layout.jobs import job_key
from belfry.store.layout.keys import manifest_key
from belfry.tenants.policy import TenantPolicy
from belfry.wire.framing import VALUE_SCHEMA_ID, prefix
from belfry.wire.record import Headers, SourceRecord
from tests.unit.playback.rows import KEY, fired, over, schedule, step
from tests.unit.playback.test_played import born

Rows = dict[bytes, bytes | None]
ROW, OTHER = schedule(90_000), schedule(90_001)


def request(
    value: bytes | None = b"", key: bytes | None = None, headers: Headers | None = None
) -> SourceRecord:
    return (90, 0, key, value, headers)


def doubts(
    logged: Rows, played: Rows, *requests: SourceRecord, tried: Tried | None = None, **policies: Any
) -> list[str]:
    """Doubts about a step of a partition where nothing waits; each policy is a tenant's fields."""
    changes = [PolicyAt(1, name, TenantPolicy(name, **each)) for name, each in policies.items()]
    partition, effects = born(policies=changes), Effects(rows=played)
    return [*doubts_about(step(logged), partition, tried or Tried(), effects, requests)]


def test_rows_alone_are_no_reason_for_doubt() -> None:
    assert doubts({KEY: ROW}, {KEY: OTHER}, request()) == []


@pytest.mark.parametrize("key", [job_key("shop", "job"), CALENDAR_PREFIX + b"shop/de"])
def test_a_row_of_a_job_or_a_calendar_is_one_though_none_is_under_way(key: bytes) -> None:
    assert doubts({key: b"\1\1"}, {}) == [WORKED]


def test_fewer_events_than_an_attempt_had_are_one() -> None:
    tried = Tried()
    for most, told in ((1, []), (2, [LATE])):
        tried.note(step({}), most, {}, lambda _: None)
        assert doubts({}, {}, tried=tried) == told


FORGETS = {"remember_ms": 0}


@pytest.mark.parametrize(
    ("logged", "played", "told"),
    [
        ({KEY: ROW}, {KEY: OTHER}, True),
        # Alike, and another tenant's row is not.
        ({KEY: ROW, b"pay/a": ROW}, {KEY: ROW, b"pay/a": OTHER}, False),
        # A tombstone that nothing was played for, and one that the log has not.
        ({KEY: None, b"pay/a": ROW}, {b"pay/a": OTHER}, True),
        ({b"pay/a": ROW}, {KEY: None, b"pay/a": OTHER}, True),
        # Where no row differs, or one that is nobody's, it may be of anybody.
        ({b"pay/a": ROW}, {b"pay/a": ROW}, True),
        ({b"pay/a": ROW, b"\0rpay/x": b"\1\2"}, {b"pay/a": ROW}, True),
        ({b"pay/a": ROW}, {b"pay/a": OTHER, manifest_key(7): b"m"}, False),
    ],
)
def test_a_policy_is_one_where_a_row_of_its_tenant_differs(
    logged: Rows, played: Rows, told: bool
) -> None:
    assert doubts(logged, played, shop=FORGETS) == ([UNREMEMBERED] if told else [])


def test_each_policy_has_its_reason() -> None:
    rows: tuple[Rows, Rows] = {KEY: ROW}, {KEY: OTHER}
    assert doubts(*rows, shop={"payload_key_ref": "env:KEY"}) == [KEYS]
    large = {"claim_check_over_bytes": 20}
    assert doubts(*rows, request(), shop=large) == [AWAY]
    assert doubts(*rows, shop=large) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (request(prefix(7) + b"body"), True),
        (request(b"body", headers=[("other", b"1"), (VALUE_SCHEMA_ID, b"2")]), True),
        (request(b"body", headers=[("other", b"1")]), False),
        (request(None), False),
    ],
)
def test_a_request_that_names_a_schema_is_one_where_it_may_have_been_refused(
    given: SourceRecord, told: bool
) -> None:
    assert doubts({KEY: ROW}, {}, request(), given) == ([SCHEMAS] if told else [])
    assert doubts({}, {KEY: ROW}, given) == ([SCHEMAS] if told else [])
    # It was taken either way.
    assert doubts({KEY: ROW}, {KEY: OTHER}, given) == []


def test_last_fires_are_one_where_one_side_alone_has_them() -> None:
    with_fires = fired(9_000, 7, 90_000)
    assert doubts({KEY: with_fires}, {KEY: ROW}) == [LAST_FIRES]
    assert doubts({KEY: ROW}, {KEY: with_fires}) == [LAST_FIRES]
    assert doubts({KEY: with_fires}, {KEY: fired(9_000, 8, 90_000)}) == []
    assert doubts({KEY: with_fires}, {KEY: over(9_000)}) == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (request(b"upsert orders/7 now"), True),
        (request(None, key=b"shop/orders/7"), True),
        (request(None, headers=[("belfry-id", None), ("belfry-id", b"orders/7")]), True),
        (request(b"order 7 of others", key=b"shop/7"), False),
        (request(None), False),
    ],
)
def test_a_schedule_is_named_by_its_whole_id_wherever_it_stands(
    given: SourceRecord, named: bool
) -> None:
    assert is_named(b"shop/orders/7", [request(b"another"), given]) is named


@pytest.mark.parametrize(
    ("rows", "tried", "standing", "sure"),
    [
        ({KEY: ROW}, {}, {}, True),
        ({b"shop/b": ROW, KEY: ROW}, {}, {b"shop/b": ROW}, True),
        ({KEY: ROW}, {KEY: OTHER}, {}, False),
        ({KEY: ROW}, {}, {KEY: OTHER}, False),
        # No worker needs a request to write these.
        ({KEY: None}, {}, {}, False),
        ({b"\0rshop/a": b"\1\2"}, {}, {}, False),
        ({manifest_key(7): b"m"}, {}, {}, False),
    ],
)
def test_a_new_row_that_nobody_asked_for_is_no_workers(
    rows: Rows, tried: Rows, standing: Rows, sure: bool
) -> None:
    noted = Tried()
    noted.note(step(rows), 0, tried, standing.get)
    assert is_sure(step(rows), noted, standing.get, [request(b"x")]) is sure
    assert not is_sure(step(rows), noted, standing.get, [request(b"its id is a, or b")])
    assert is_sure(step(rows)._replace(twice=KEY), noted, standing.get, [request(b"a")])
