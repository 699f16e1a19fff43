"""A rate of requests counts by the broker's clock, never by what a producer says."""

from __future__ import annotations

import pytest

from belfry.schedules.identity import Homes
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.batch import SourceBatch
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Keys, Purpose, keys_of
from tests.unit.engine.driver import HOUR, T0, Driver, request

KEYS = keys_of([b"what-workers-share"], Purpose.ORIGIN)
HOMES = Homes(4)
AT_ONE = next(name for name in map("t{}".format, range(99)) if HOMES.of(name) == 1)


def driver(partition: int = 1, keys: Keys = KEYS, **policy: float) -> Driver:
    """The owner of a partition of four; its tenant lives at partition 1."""
    found = Driver(partition=partition, partitions=4)
    found.place = found.place._replace(origin_keys=keys)
    found.start(found.rows)
    effective = EffectivePolicy(TenantPolicy(AT_ONE, lifecycle="ALL", **policy))  # type: ignore[arg-type]
    found.tenants.follow(effective)
    return found


def forged(at_ms: int) -> Headers:
    """What any producer may write."""
    return [
        ("belfry-origin-topic", b"elsewhere"),
        ("belfry-origin-partition", b"7"),
        ("belfry-origin-offset", b"9"),
        ("belfry-origin-timestamp", b"%d" % at_ms),
    ]


def ask(found: Driver, name: str, headers: Headers | None = None, at_ms: int = T0) -> None:
    value = request(tenant=AT_ONE, schedule_id=name, at=T0 + HOUR, request_id=name)
    found.send(value, None, headers, timestamp_ms=at_ms)


@pytest.mark.parametrize("keys", [(), KEYS])
def test_a_rate_does_not_count_by_what_a_producer_says(keys: Keys) -> None:
    found = driver(keys=keys, max_requests_per_second=1)
    for n in range(20):
        ask(found, f"s{n}", forged(T0 - 60_000 + 2_000 * n))
    step = found.step(T0)
    assert step.outcomes.count("ACCEPTED") == 1
    assert step.codes == ["too_many_requests"] * 19


def test_a_rate_counts_by_the_workers_clock_where_the_topic_has_no_append_times() -> None:
    found = driver(max_requests_per_second=1)
    for n in range(20):
        ask(found, f"s{n}", at_ms=T0 - 60_000 + 2_000 * n)
    batch = SourceBatch(0, 20, found.source, appended=False)
    effects = found.engine.accept(batch, T0)
    assert effects.rejections["too_many_requests"] == 19


def test_a_rate_counts_when_a_stray_first_arrived_where_a_worker_proves_it() -> None:
    """They waited while no worker ran, and come at once: they were not sent at once."""
    away, home = driver(0), driver(1, max_requests_per_second=1)
    for n in range(20):
        ask(away, f"s{n}", at_ms=T0 - 60_000 + 2_000 * n)
    for stray in away.step(T0).effects.rerouted:
        assert stray.partition == 1
        home.send(stray.value, stray.key, stray.headers, timestamp_ms=T0)
    assert home.step(T0).outcomes == ["ACCEPTED"] * 20
