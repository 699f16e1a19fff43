"""Output topics without a leader: nobody is held for a moment, and nobody longer than it lasts."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.outputs import readiness
from belfry.outputs.holding import OFFLINE
from belfry.outputs.readiness import Outputs
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from tests.unit.outputs.test_readiness import Cluster


class Restarted(Cluster):
    """A cluster whose topics are without a leader while their broker is away."""

    leader = 1

    def list_topics(self, timeout: float) -> Any:
        partitions = {0: SimpleNamespace(leader=self.leader)}
        topic = SimpleNamespace(error=None, partitions=partitions)
        return SimpleNamespace(topics={"belfry.fired.a": topic})

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {}


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    monkeypatch.setattr(librdkafka, "AdminClient", Restarted)
    monkeypatch.setattr(readiness, "TURN_S", 0.0)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    tenants.of("a")
    found = Outputs(Settings(), tenants, None)
    found._view.look()
    return found


def turns(outputs: Outputs, monkeypatch: pytest.MonkeyPatch, *instants_s: float) -> list[str]:
    """Why the tenant is held after each turn of the thread, at these instants."""
    told = []
    for instant_s in instants_s:
        monkeypatch.setattr(machine, "monotonic", lambda instant_s=instant_s: instant_s)
        outputs._look_now_and_then()
        told.append(outputs._tenants.of("a").held)
    return told


def test_a_leader_that_moves_holds_nobody(
    restarted: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin: Any = restarted._admin
    admin.leader = -1
    assert turns(restarted, monkeypatch, 100.0, 100.5) == ["", ""]
    admin.leader = 2
    assert turns(restarted, monkeypatch, 101.0, 106.0) == ["", ""]
    assert not restarted._view.doubted


def test_who_has_no_leader_is_held_with_the_second_look_and_let_go_within_two_seconds(
    restarted: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it was away: all of that time its tenants' events have waited."""
    admin: Any = restarted._admin
    admin.leader = -1
    assert turns(restarted, monkeypatch, 100.0, 101.0) == ["", OFFLINE]
    seconds = [102.0 + number for number in range(60)]
    assert set(turns(restarted, monkeypatch, *seconds)) == {OFFLINE}
    admin.leader = 1
    assert turns(restarted, monkeypatch, 162.0, 163.0)[-1] == ""
