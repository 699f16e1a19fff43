"""A worker publishes its schemas or says what is wrong with them, and begins either way."""

from __future__ import annotations

import pytest

from belfry.registry.answers import RegistryUnreachableError, SchemaRefusedError
from belfry.registry.client import Registry
from belfry.registry.startup import WITHOUT, Frames, frames
from belfry.settings import ClusterSettings, Settings
from belfry.wire import framing


def settings(*, auto: bool = False, wait_ms: int = 3_000) -> Settings:
    return Settings(
        cluster=ClusterSettings(topic_prefix="mine."),
        schema_registry_url="mock://startup",
        registry_auto_register=auto,
        registry_wait_ms=wait_ms,
    )


class Moody(Registry):
    """A registry that fails so many times before it answers."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        super().__init__("mock://moody")
        self.failures = failures
        self.error = error or RegistryUnreachableError("away")

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.error

    def publish(self, subject: str, name: str) -> int:
        self._fail()
        return len(subject)

    def check(self, subject: str, name: str) -> list[str]:
        self._fail()
        return [f"{subject} has compatibility BACKWARD"] if "lifecycle" in subject else []

    def id_of(self, subject: str, name: str) -> int | None:
        return 7 if subject == "mine.lifecycle-value" else None


def test_a_worker_that_may_publishes_and_waits_for_a_registry_that_starts() -> None:
    told: list[str] = []
    slept: list[float] = []
    found = frames(Moody(2), settings(auto=True), told.append, slept.append)
    topics = ("schedules", "lifecycle", "deliveries", "audit")
    subjects = [f"mine.{topic}-value" for topic in topics]
    assert found == Frames(*(framing.prefix(len(subject)) for subject in subjects))
    assert told == ["away", "away"]
    assert slept == [1.0, 1.0]


def test_a_registry_that_stays_away_ends_the_wait() -> None:
    with pytest.raises(RegistryUnreachableError):
        frames(Moody(9), settings(auto=True), list[str]().append, lambda _: None)


def test_a_refusal_is_not_waited_for() -> None:
    slept: list[float] = []
    refused = Moody(9, SchemaRefusedError("incompatible"))
    with pytest.raises(SchemaRefusedError):
        frames(refused, settings(auto=True), list[str]().append, slept.append)
    assert slept == []


def test_a_worker_that_may_not_says_what_is_wrong_and_takes_the_id() -> None:
    told: list[str] = []
    found = frames(Moody(), settings(), told.append)
    assert found == Frames(WITHOUT.request, framing.prefix(7), WITHOUT.deliveries)
    assert told == ["mine.lifecycle-value has compatibility BACKWARD"]


def test_a_worker_that_may_not_begins_without_a_registry() -> None:
    told: list[str] = []
    assert frames(Moody(9), settings(), told.append) == WITHOUT
    assert told == ["away"]
