"""Where workers share a secret, a request's origin is what a worker says, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from belfry.engine.effects import Effects, Rerouted
from belfry.engine.forward import TenantInput, forward_requests
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.wire.origins import ORIGIN_SIGNATURE, vouched
from belfry.wire.record import Headers, Origin, origin_headers
from belfry.wire.worker_keys import Keys, Purpose, keys_of
from tests.unit.engine.driver import HOUR, T0, Driver, request

OLD = keys_of([b"the secret of last year"], Purpose.ORIGIN)
BOTH = keys_of([b"the secret of this year", b"the secret of last year"], Purpose.ORIGIN)
HOMES = Homes(4)
HOME = HOMES.of("demo")
FORGED: Headers = origin_headers(Origin("elsewhere", 3, 99, T0 - HOUR, rerouted=False))


def at(partition: int, keys: Keys) -> Driver:
    driver = Driver(partition=partition, partitions=4)
    driver.place = driver.place._replace(origin_keys=keys)
    driver.start(driver.rows)
    return driver


@dataclass
class Told:
    """What a verdict says of its request."""

    place: tuple[str | None, int | None]
    due_ms: int | None


def told(driver: Driver, stray: Rerouted) -> Told:
    """The verdict at home on a request that was sent on."""
    driver.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 5)
    (event,) = driver.step(T0 + 5).effects.lifecycle
    return Told((event.source_topic, event.source_partition), event.due_at)


def sent_on(keys: Keys, headers: Headers | None = None) -> Rerouted:
    """A request with a delay, as a partition that does not own it sends it on."""
    away = at((HOME + 1) % 4, keys)
    value = request(kind="AFTER", delay_ms=HOUR, request_id="r")
    away.send(value, None, headers, timestamp_ms=T0)
    (stray,) = away.step(T0).effects.rerouted
    return stray


@pytest.mark.parametrize(("signs", "reads"), [(OLD, OLD), (OLD, BOTH), (BOTH, BOTH), ((), ())])
def test_what_a_worker_says_is_believed(signs: Keys, reads: Keys) -> None:
    found = told(at(HOME, reads), sent_on(signs))
    assert found == Told(("belfry.schedules", (HOME + 1) % 4), T0 + HOUR)


@pytest.mark.parametrize("headers", [FORGED, vouched(OLD, None, b"another value", FORGED)])
def test_what_anybody_else_says_is_not(headers: Headers) -> None:
    """Without keys an instant of the producer's choice counts, and the verdict names its place."""
    value = request(kind="AFTER", delay_ms=HOUR, request_id="r")
    forged = Rerouted(HOME, None, value, headers)
    assert told(at(HOME, ()), forged) == Told(("elsewhere", 3), T0)
    assert told(at(HOME, OLD), forged) == Told(("belfry.schedules", HOME), T0 + 5 + HOUR)
    # Nor does it become true by being sent on.
    stray = sent_on(OLD, headers)
    assert told(at(HOME, OLD), stray) == Told(("belfry.schedules", (HOME + 1) % 4), T0 + HOUR)


@pytest.mark.parametrize("spoil", ["belfry-origin-timestamp", "belfry-origin-asked", "mine"])
def test_the_proof_covers_every_header(spoil: str) -> None:
    stray = sent_on(OLD, [("mine", b"1")])
    headers = [(n, b"1" if n == spoil else v) for n, v in stray.headers]
    if spoil == "belfry-origin-asked":
        headers.insert(0, (spoil, b"0"))
    if spoil == "mine":
        headers[0] = ("mine", b"2")
    spoilt = Rerouted(stray.partition, stray.key, stray.value, headers)
    assert told(at(HOME, OLD), spoilt).place == ("belfry.schedules", HOME)


def test_another_secret_proves_nothing() -> None:
    stranger = keys_of([b"a secret of somebody else"], Purpose.ORIGIN)
    assert told(at(HOME, OLD), sent_on(stranger)).place == ("belfry.schedules", HOME)


def test_what_is_handed_over_from_a_tenants_own_topic_is_believed() -> None:
    tenant_input = TenantInput(SourcePartition("belfry.schedules.demo", 2, HOMES, OLD), "demo")
    value = request(kind="AFTER", delay_ms=HOUR, request_id="r")
    (handed,) = forward_requests(
        [(7, T0, None, value, FORGED)], tenant_input, T0, Effects()
    ).rerouted
    assert handed.headers[-1][0] == ORIGIN_SIGNATURE
    assert told(at(HOME, OLD), handed) == Told(("belfry.schedules.demo", 2), T0 + HOUR)
