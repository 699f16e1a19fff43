"""No value within a request ends a step: its partition would stop with each owner anew."""

from __future__ import annotations

import json

import pytest

from belfry.schedules.targets import record_of
from belfry.tenants.effective import Level
from belfry.wire.record import Headers
from tests.unit.engine.driver import T0, Driver

BY_HEADERS: Headers = [
    ("belfry-tenant", b"demo"),
    ("belfry-id", b"a"),
    ("belfry-request-id", b"r"),
    ("belfry-at", b"1900000000000"),
]
ODD_VALUES: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    10**30,
    1e300,
    "",
    "x",
    "\ud800",
    [],
    [None],
    {},
    {"x": None},
)


@pytest.mark.parametrize("name", sorted(record_of("")))
def test_no_value_within_a_target_ends_a_step(name: str) -> None:
    """An exception within a step would come again with each owner: its partition would stop."""
    for value in ODD_VALUES:
        driver = Driver(Level.FAILURES)
        target = json.dumps([{"url": "https://a.example/", name: value}]).encode()
        driver.send(b"v", None, [*BY_HEADERS, ("belfry-webhook", target)])
        (told,) = driver.step(T0).effects.lifecycle
        assert str(told.outcome) in ("ACCEPTED", "REJECTED"), (value, told)
