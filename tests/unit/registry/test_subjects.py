"""Which subjects there are, and which id an envelope tenant's topic is written with."""

from __future__ import annotations

import pytest

from belfry.registry.answers import (
    Missing,
    RegistryUnreachable,
    RegistryUnreachableError,
    Unusable,
    WriterSchema,
)
from belfry.registry.client import Registry
from belfry.registry.naming import Strategy, subject_of
from belfry.registry.subjects import ask_in, fired_event_id, look_in, open_registry, subjects
from belfry.settings import ClusterSettings, Settings


def settings(*, auto: bool = False) -> Settings:
    """Settings of a belfry whose topics have a prefix of its own."""
    return Settings(
        cluster=ClusterSettings(topic_prefix="mine."),
        schema_registry_url="mock://subjects",
        registry={"max_retries": "2", "timeout": "1.5"},
        registry_auto_register=auto,
    )


class Ids(Registry):
    """A registry of a few known ids that remembers what was registered."""

    def __init__(self, ids: dict[str, int]) -> None:
        super().__init__("mock://ids")
        self.ids = ids

    def publish(self, subject: str, name: str) -> int:
        return self.ids.setdefault(subject, 50)

    def id_of(self, subject: str, name: str) -> int | None:
        assert name == "FiredEvent"
        return self.ids.get(subject)


def test_subjects_follow_the_topics() -> None:
    assert subjects(settings()) == {
        "mine.schedules-value": "ScheduleRequest",
        "mine.lifecycle-value": "LifecycleEvent",
        "mine.tenants-value": "TenantPolicy",
        "mine.audit-value": "AuditEvent",
        "mine.deliveries-value": "FiredEvent",
    }


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TOPIC", "mine.fired.demo-value"),
        ("RECORD", "io.belfry.FiredEvent"),
        ("TOPIC_RECORD", "mine.fired.demo-io.belfry.FiredEvent"),
    ],
)
def test_subjects_follow_the_strategy(strategy: Strategy, subject: str) -> None:
    assert subject_of("mine.fired.demo", "FiredEvent", strategy) == subject
    chosen = settings(auto=True).model_copy(update={"registry_subjects": strategy})
    registry = Ids({})
    assert fired_event_id(registry, chosen, "mine.fired.demo") == 50
    assert list(registry.ids) == [subject]
    assert len(subjects(chosen)) == 5


def test_a_registry_is_opened_where_one_is_configured() -> None:
    registry = open_registry(settings())
    assert registry is not None
    assert registry.url == "mock://subjects"
    assert open_registry(Settings(schema_registry_url=None)) is None


def test_a_property_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="soon"):
        Registry("http://127.0.0.1:1", {"timeout": "soon"})


def test_a_tenants_topic_is_registered_on_first_use_where_belfry_may() -> None:
    registry = Ids({})
    assert fired_event_id(registry, settings(auto=True), "mine.fired.demo") == 50
    assert registry.ids == {"mine.fired.demo-value": 50}


def test_elsewhere_the_tenants_own_id_wins_over_the_general_one() -> None:
    registry = Ids({"mine.fired.a-value": 3, "mine.deliveries-value": 4})
    assert fired_event_id(registry, settings(), "mine.fired.a") == 3
    assert fired_event_id(registry, settings(), "mine.fired.b") == 4


def test_without_any_there_is_none() -> None:
    assert fired_event_id(Ids({}), settings(), "mine.fired.a") is None


class Answers(Registry):
    """A registry that gives each reference the same answer."""

    def __init__(self, answer: WriterSchema) -> None:
        super().__init__("http://u:hunter2@r:8081")
        self._answer = answer

    def writer_schema(self, schema_id: int) -> WriterSchema:
        return self._answer

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        return self._answer


@pytest.mark.parametrize("reference", [7, b"0123456789abcdef"])
def test_an_outage_is_told_from_there_is_none_to_who_asks(reference: int | bytes) -> None:
    silent = Answers(RegistryUnreachable("it hangs"))
    ask, look = ask_in(silent), look_in(silent)
    assert ask is not None
    assert look is not None
    with pytest.raises(RegistryUnreachableError, match=r"at http://r:8081 .* \(it hangs\): check"):
        ask(reference)
    assert look(reference) is None
    for answer in (Missing("none"), Unusable("it is JSON")):
        ask = ask_in(Answers(answer))
        assert ask is not None
        assert ask(reference) is None
    known = ask_in(Answers({"type": "record"}))
    assert known is not None
    assert known(reference) == {"type": "record"}
    assert (ask_in(None), look_in(None)) == (None, None)
