"""Output topics without a leader: nobody is held for a moment, and nobody longer than it lasts."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Event, Thread
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
    found._view.look(0.0)
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


def test_who_waits_for_a_leader_costs_nothing_until_it_is_there(
    restarted: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be many thousands, and the look that is made anyway tells of all of them."""
    admin: Any = restarted._admin
    admin.leader = -1
    assert turns(restarted, monkeypatch, 100.0, 101.0) == ["", OFFLINE]
    tried: list[list[str]] = []
    monkeypatch.setattr(restarted, "_make_ready", tried.append)
    turns(restarted, monkeypatch, *(102.0 + number / 2 for number in range(20)))
    assert not tried
    admin.leader = 1
    turns(restarted, monkeypatch, 112.0)
    assert tried == [["a"]]


def test_who_looks_often_holds_nobody_sooner(
    restarted: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition's owner looks for itself where a step fails, all at the same moment."""
    admin: Any = restarted._admin
    admin.leader = -1
    for instant_s, held in ((100.0, ""), (100.001, ""), (100.9, ""), (101.0, OFFLINE)):
        monkeypatch.setattr(machine, "monotonic", lambda instant_s=instant_s: instant_s)
        restarted.hold({})
        assert restarted._tenants.of("a").held == held


def test_one_look_follows_another(restarted: Outputs) -> None:
    """Two at once would each tell what changed since the same look before."""
    admin: Any = restarted._admin
    answer, overtaken = admin.list_topics, Event()
    other = Thread(target=restarted._view.look, args=(100.0,))

    def overtake(timeout: float) -> Any:
        overtaken.set()
        return answer(timeout)

    def ask_again(timeout: float) -> Any:
        admin.list_topics = overtake
        other.start()
        assert not overtaken.wait(0.1)
        return answer(timeout)

    admin.list_topics = ask_again
    restarted._view.look(100.0)
    other.join(10)
    assert overtaken.is_set()


def test_who_has_no_leader_is_held_after_a_second_and_let_go_within_two_seconds(
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


def test_it_asks_by_the_client_that_it_is_given(restarted: Outputs) -> None:
    class Idle(Restarted):
        """One whose queue is empty, which counts as false."""

        def __len__(self) -> int:
            return 0

    given: Any = Idle({})
    found = Outputs(Settings(), restarted._tenants, None, admin=given)
    assert found._admin is found._view.admin is given
