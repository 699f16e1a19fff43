"""What of Kafka a slice of a redrive asks for: which topic, how many, under which id."""

from __future__ import annotations

from typing import Any

import pytest

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

    def __init__(self, _cluster: Any, names: Any, source: Any, most_read: int) -> None:
        self.made.append((names, source, most_read))

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
    monkeypatch.setattr(redriving, "Redrive", Recorded)


@pytest.fixture
def settings() -> Settings:
    return Settings(bootstrap_servers="127.0.0.1:1", cluster={"topic_prefix": "p."})


def test_a_count_sends_nothing(settings: Settings) -> None:
    found, sent = redriving.redriven(settings, RedriveWork(REFUSED, "shop"), {})
    assert (len(found.places), sent, Recorded.sent) == (1, 0, [])


def test_a_tenant_without_a_topic_has_fired_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Recorded) -> RedriveCount:
        raise MissingTopic("Topic p.fired.shop does not exist")

    monkeypatch.setattr(Recorded, "count", missing)
    assert redriving.redriven(settings, RedriveWork(FIRED, "shop"), {}) == (RedriveCount(), 0)
    with pytest.raises(MissingTopic):
        redriving.redriven(settings, RedriveWork(REFUSED, "shop"), {})


def test_a_slice_takes_ten_seconds_at_its_rate_under_the_id_of_all_redrives(
    settings: Settings,
) -> None:
    _, sent = redriving.redriven(settings, RedriveWork(REFUSED, "shop", 30, "why"), {})
    assert (sent, Recorded.sent) == (1, [{"per_second": 30, "at_most": 300}])
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
        redriving.redriven(settings, RedriveWork(FIRED, tenant), policies)
    sources = [source for _, source, _ in Recorded.made]
    assert all(isinstance(each, FiredSource) for each in sources)
    assert [each.topic for each in sources] == ["p.fired.plain", "alone", "p.fired"]
    # On the topic of all, the tenant's own events alone.
    assert [each._asked.tenant for each in sources] == [None, None, "many"]
    with pytest.raises(SharedTopic, match="both has the events of b too"):
        redriving.redriven(settings, RedriveWork(FIRED, "a"), policies)
