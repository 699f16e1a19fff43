"""Usage as it stands in the metering topic: its JSON, its periods and its sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from belfry.schedules.instants import parse_instant
from belfry.wire.metering import Usage, decode_usage, encode_usage, period_of, summed

NINE = parse_instant("2026-12-01T09:00:00Z")
HOUR = 3_600_000
USED = Usage(
    tenant="acme", from_ms=NINE, until_ms=NINE + HOUR, accepted=120, fired=118, delivered=7,
    held_byte_ms=7_203_600_000, partition=2,
)  # fmt: skip
WRITTEN = (
    b'{"v":1,"tenant":"acme","from":"2026-12-01T09:00:00.000Z","until":"2026-12-01T10:00:00.000Z",'
    b'"accepted":120,"fired":118,"delivered":7,"held_byte_ms":7203600000,"partition":2}'
)


def test_usage_is_written_so_and_read_back() -> None:
    assert encode_usage(USED) == WRITTEN
    assert decode_usage(WRITTEN) == USED
    assert decode_usage(encode_usage(replace(USED, partition=None))) == replace(
        USED, partition=None
    )


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"v": None}, {"from": 9}, {"fired": "many"}, {"until": "tomorrow"}]
)
def test_what_this_version_cannot_read_is_none(change: dict[str, Any]) -> None:
    assert decode_usage(orjson.dumps(orjson.loads(WRITTEN) | change)) is None


@pytest.mark.parametrize("name", ["v", "tenant", "from", "until", "accepted", "partition"])
def test_what_lacks_a_field_is_none(name: str) -> None:
    found = orjson.loads(WRITTEN)
    del found[name]
    assert decode_usage(orjson.dumps(found)) is None


@pytest.mark.parametrize("value", [None, b"", b"{", b"[1]", b"7", b"null"])
def test_what_is_no_object_is_none(value: bytes | None) -> None:
    assert decode_usage(value) is None


@pytest.mark.parametrize("now_ms", [NINE, NINE + 1, NINE + HOUR - 1])
def test_a_period_has_its_begin_and_not_its_end(now_ms: int) -> None:
    assert period_of(now_ms, HOUR) == (NINE, NINE + HOUR)


def test_bytes_that_waited_for_hours_are_told_by_hours() -> None:
    assert USED.held_byte_hours == 2_001.0


def test_sums_are_of_a_tenant_and_a_period_and_stand_in_order() -> None:
    later = replace(USED, from_ms=NINE + HOUR, until_ms=NINE + 2 * HOUR)
    other = replace(USED, tenant="a", fired=1)
    longer = replace(USED, until_ms=NINE + 2 * HOUR, delivered=1)
    elsewhere = replace(USED, accepted=1, fired=2, delivered=3, held_byte_ms=4, partition=5)
    whole = replace(
        USED, accepted=121, fired=120, delivered=10, held_byte_ms=7_203_600_004, partition=None
    )
    plain = [replace(each, partition=None) for each in (other, longer, later)]
    found = summed([later, longer, USED, other, elsewhere])
    assert found == [plain[0], whole, plain[1], plain[2]]
    assert summed([]) == []
