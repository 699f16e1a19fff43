"""Bits of the hour: what a probe says of itself, how rows are joined, and what is no row."""

from __future__ import annotations

import pytest

from belfry.canary.asking import CanaryRequests, accepted_in
from belfry.canary.slots import (
    HOUR_MS,
    CanarySlots,
    HourRow,
    Probe,
    decode_row,
    encode_row,
    probe_in,
)
from belfry.schedules.identity import Homes
from belfry.schedules.outcomes import Outcome
from belfry.tenants.canary import CANARY, CANARY_SHARDS
from belfry.wire.accepted import PlainAccepted
from belfry.wire.claims import proves
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.record import SIGNATURE

TEN_S = 10_000
PROBE = Probe(3, 360 * 500_000 + 7, TEN_S)


def outcome_of(tenant: str, schedule_id: str, outcome: Outcome, probe: Probe) -> LifecycleEvent:
    """What a partition tells of a request."""
    return LifecycleEvent(
        tenant=tenant, schedule_id=schedule_id, outcome=outcome, at=1, due_at=probe.due_ms
    )


def test_a_probe_comes_back_as_it_went() -> None:
    assert probe_in(PROBE.payload()) == PROBE
    assert (PROBE.hour, PROBE.bit) == (500_000, 1 << 7)
    assert PROBE.due_ms == 500_000 * HOUR_MS + 75_000


@pytest.mark.parametrize(
    "payload", [None, b"", b"1/2", b"1/2/3/4", b"a/2/1000", b"1/-2/1000", b"1/2/0", b"1/2/7777777"]
)
def test_what_is_no_probe_is_none(payload: bytes | None) -> None:
    assert probe_in(payload) is None


def test_a_row_comes_back_as_it_went() -> None:
    row = HourRow(3, 500_000, TEN_S, 4, (1 << 360) - 1, 5, 4, 1)
    assert decode_row(encode_row(row)) == row


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"{}",
        b"[]",
        b"nothing",
        encode_row(HourRow(0, 1, 0)),
        encode_row(HourRow(-1, 1, TEN_S)),
        encode_row(HourRow(0, 1, TEN_S, asked=-1)),
        encode_row(HourRow(0, 1, TEN_S)).replace(b'"v":1', b'"v":2'),
        encode_row(HourRow(1, 1 << 32, 10_000)),
        encode_row(HourRow(1, -1, 10_000)),
        encode_row(HourRow(1, 1, 10_000)).replace(b'"hour":1', b'"hour":"%d"' % 10**20),
    ],
)
def test_what_is_no_row_is_none(value: bytes | None) -> None:
    assert decode_row(value) is None


def test_rows_of_two_owners_are_one_in_any_order() -> None:
    former = HourRow(0, 9, TEN_S, 4, asked=0b0111, registered=0b0011, fired=0b0001)
    later = HourRow(0, 9, TEN_S, 4, asked=0b1100, registered=0b1000, fired=0b0110)
    for rows in ([former, later], [later, former, former]):
        book = CanarySlots(rows)
        (joined,) = book.rows.values()
        assert (joined.asked, joined.registered, joined.fired) == (0b1111, 0b1011, 0b0111)
        assert book.last_asked(0, TEN_S) == 9 * 360 + 3
    assert book.last_asked(1, TEN_S) is None


def test_each_request_leads_to_its_partition_and_is_signed() -> None:
    homes = Homes(7)
    asking = CanaryRequests(homes, b"head", b"key")
    for partition in range(7):
        probe = PROBE._replace(partition=partition)
        asked = asking.request(probe)
        schedule_id = asking.schedule_id(probe)
        assert homes.of(CANARY, schedule_id, CANARY_SHARDS) == asked.partition == partition
        assert homes._home(asked.key.decode()) == partition
        assert proves((b"key",), CANARY, asked.key, asked.value, asked.headers)
        assert [name for name, _ in asked.headers] == [SIGNATURE]
        told = outcome_of(CANARY, schedule_id, Outcome.ACCEPTED, probe)
        assert accepted_in(told, TEN_S) == probe
        for tenant, found in ((CANARY, probe), ("demo", None)):
            names = tenant.encode(), schedule_id.encode()
            about = b"%b/%b" % names, (*names, b"r"), told.due_at or 0
            plain = PlainAccepted(*about, 6, 5, ("t", 0), 1)
            assert accepted_in(plain, TEN_S) == found


def test_others_outcomes_are_no_probes() -> None:
    for tenant, outcome in (("demo", Outcome.ACCEPTED), (CANARY, Outcome.REJECTED)):
        told = outcome_of(tenant, "0.1.0", outcome, PROBE)
        assert accepted_in(told, TEN_S) is None
