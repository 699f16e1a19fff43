"""Which requests are kept without being taken apart."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants.effective import Level
from belfry.wire.accepted import PlainAccepted
from tests.unit.engine.driver import HOUR, T0, Driver


@pytest.mark.parametrize("ids", [False, True], ids=["without ids", "with ids"])
@pytest.mark.parametrize("seen", [False, True], ids=["a new tenant", "one whose topic was seen"])
def test_only_the_first_request_of_a_new_tenant_is_taken_apart(
    seen: bool, ids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first batch that goes the long way costs a start a second."""
    driver = Driver(Level.FAILURES)
    if seen:
        driver.tenants.of("shop")
    taken: list[int] = []
    read_whole = driver.engine._parts.batches._reader.read_whole

    def counted(record: Any) -> Any:
        taken.append(record[0])
        return read_whole(record)

    monkeypatch.setattr(driver.engine._parts.batches._reader, "read_whole", counted)
    for number in range(9):
        own = f"r-{number}" if ids else None
        about: Any = {"schedule_id": f"order-{number}", "payload": b"cargo", "request_id": own}
        driver.ask(tenant="shop", at=T0 + HOUR, **about)
    told = driver.step(T0).effects.lifecycle
    assert driver.engine.pending == 9
    assert [event.request_id for event in told] == [f"r-{n}" for n in range(9) if ids]
    assert taken == ([] if seen else [0])
    # Verdicts on plain requests are not taken apart either.
    plain = [isinstance(event, PlainAccepted) for event in told]
    assert plain == [seen or number > 0 for number in range(9) if ids]
    # Nor do they hold payloads until the commit.
    assert "cargo" not in repr(told)
