"""What of Kafka a slice of a redrive asks for: which topic, how many, under which id."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

from belfry.api.routes.redrives import MOST_COUNTS, MOST_REDRIVES
from belfry.api.workers.kept import RedriveWork
from belfry.client.errors import MissingTopic
from belfry.client.redrive_source import RedriveCount
from belfry.client.refired import FiredSource, RefireRange, SharedTopic
from belfry.client.refusals import RedriveRange, RefusedSource
from belfry.process import redriving
from belfry.settings import Settings
from belfry.tenants.policy import TenantPolicy

REFUSED = RedriveRange("shop", 1, 2, None)
FIRED = RefireRange(1, 2)


class Recorded:
    """Stands for `Redrive`; remembers what it was made for."""

    made: list[Any] = []  # noqa: RUF012  # emptied by each test
    sent: list[dict[str, Any]] = []  # noqa: RUF012
    pauses: list[Any] = []  # noqa: RUF012

    def __init__(self, _cluster: Any, names: Any, source: Any, most_read: int, pause: Any) -> None:
        self.made.append((names, source, most_read))
        self.pauses.append(pause)

    def count(self) -> RedriveCount:
        return RedriveCount(places=[(0, 1)])

    def send(self, *, told: Any, **how: Any) -> RedriveCount:
        self.sent.append(how)
        told(1)
        return self.count()


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded.made.clear()
    Recorded.sent.clear()
    Recorded.pauses.clear()
    monkeypatch.setattr(redriving, "Redrive", Recorded)


@pytest.fixture
def settings() -> Settings:
    return Settings(bootstrap_servers="127.0.0.1:1", cluster={"topic_prefix": "p."})


def test_a_count_sends_nothing(settings: Settings) -> None:
    found, sent = redriving.RedriveSlices(settings).redriven(RedriveWork(REFUSED, "shop"), {})
    assert (len(found.places), sent, Recorded.sent) == (1, 0, [])


def test_a_tenant_without_a_topic_has_fired_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Recorded) -> RedriveCount:
        raise MissingTopic("Topic p.fired.shop does not exist")

    monkeypatch.setattr(Recorded, "count", missing)
    assert redriving.RedriveSlices(settings).redriven(RedriveWork(FIRED, "shop"), {}) == (
        RedriveCount(),
        0,
    )
    with pytest.raises(MissingTopic):
        redriving.RedriveSlices(settings).redriven(RedriveWork(REFUSED, "shop"), {})


def test_a_slice_takes_ten_seconds_at_its_rate_under_the_id_of_all_redrives(
    settings: Settings,
) -> None:
    _, sent = redriving.RedriveSlices(settings).redriven(
        RedriveWork(REFUSED, "shop", 30, "why"), {}
    )
    assert (sent, Recorded.sent) == (1, [{"per_second": 30, "at_most": 300, "at_most_s": 10}])
    ((names, source, most_read),) = Recorded.made
    assert names[0] == "p.redrive"
    assert isinstance(source, RefusedSource)
    assert (source.topic, most_read) == ("p.rejected", redriving.MOST_READ)


def test_events_are_looked_for_where_the_tenant_has_them(settings: Settings) -> None:
    policies = {
        "own": TenantPolicy("own", output_topic="alone"),
        "many": TenantPolicy("many", output="SHARED"),
        "a": TenantPolicy("a", output_topic="both"),
        "b": TenantPolicy("b", output_topic="both"),
    }
    for tenant in ("plain", "own", "many"):
        redriving.RedriveSlices(settings).redriven(RedriveWork(FIRED, tenant), policies)
    sources = [source for _, source, _ in Recorded.made]
    assert all(isinstance(each, FiredSource) for each in sources)
    assert [each.topic for each in sources] == ["p.fired.plain", "alone", "p.fired"]
    # On the topic of all, the tenant's own events alone.
    assert [each._asked.tenant for each in sources] == [None, None, "many"]
    with pytest.raises(SharedTopic, match="both has the events of b too"):
        redriving.RedriveSlices(settings).redriven(RedriveWork(FIRED, "a"), policies)


def test_the_end_of_the_process_ends_a_slice_and_waits_for_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices, begun, ended = redriving.RedriveSlices(settings), Event(), Event()

    def sends(_: Recorded, **__: Any) -> RedriveCount:
        begun.set()
        # Between two transactions of a slow redrive.
        assert Recorded.pauses[-1](60.0)
        ended.set()
        return RedriveCount()

    monkeypatch.setattr(Recorded, "send", sends)
    thread = Thread(target=slices.redriven, args=(RedriveWork(REFUSED, "shop", 1), {}))
    thread.start()
    assert begun.wait(30)
    assert not ended.is_set()
    slices.stop()
    assert ended.is_set()
    thread.join()
    # What comes later is told to end as well.
    slices.redriven(RedriveWork(REFUSED, "shop"), {})
    assert Recorded.pauses[-1](0.0)


def test_one_count_and_one_slice_are_under_way_at_a_time_and_none_waits_for_room() -> None:
    assert (MOST_COUNTS, MOST_REDRIVES) == (1, 1)
    assert redriving.AT_ONCE == MOST_COUNTS + MOST_REDRIVES
