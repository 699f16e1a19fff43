"""A request at its place, as HTTP may show it: to its own tenant, and without credentials."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.kafka.tail_readers import TailReaders
from belfry.process.kept_topics import ReadKeptTopics
from belfry.registry.answers import RegistryUnreachableError
from belfry.settings import Settings
from belfry.wire.record import Headers
from tests.acceptance.harness.requests import request
from tests.unit.process.test_readable import Message

TOPIC: Final = "belfry.schedules"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> ReadKeptTopics:
    """The topic of requests with one of tenant `mine` at partition 1, offset 7."""
    target = {
        "url": "https://a.example/x?token=hunter2",
        "headers": [{"name": "x", "value": "hunter2"}],
    }
    headers = [{"name": "Authorization", "value": b"hunter2"}]
    value = request("mine", "a", kind="AT", at=5, http_targets=[target], headers=headers)

    def record_at(_readers: Any, topic: str, place: tuple[int, int]) -> Any:
        assert topic == TOPIC
        return Message(value, b"mine") if place == (1, 7) else None

    def headers_of(messages: Any) -> list[Headers]:
        return [each.headers() for each in messages]

    monkeypatch.setattr(TailReaders, "record_at", record_at)
    # It maps a method of real messages over them.
    monkeypatch.setattr("belfry.process.readable.headers_of", headers_of)
    return ReadKeptTopics(Settings(schema_registry_url="http://127.0.0.1:1"), lambda: 0.0)


def test_a_request_is_shown_to_its_own_tenant_alone(kept: ReadKeptTopics) -> None:
    found = kept.request("mine", TOPIC, (1, 7))
    assert found is not None
    assert (found["schedule_id"], found["at"]) == ("a", 5)
    assert kept.request("mine", None, (1, 7)) == found
    assert kept.request("other", None, (1, 7)) is None
    assert kept.request("mine", None, (1, 8)) is None
    assert kept.request("mine", "belfry.tenants", (1, 7)) is None


def test_credentials_of_a_request_are_masked(kept: ReadKeptTopics) -> None:
    found = kept.request("mine", None, (1, 7))
    assert found is not None
    assert found["headers"] == [["Authorization", b"***"]]
    assert "hunter2" not in repr(found)


def test_a_registry_that_does_not_answer_is_told(kept: ReadKeptTopics) -> None:
    with pytest.raises(RegistryUnreachableError, match=r"at http://127\.0\.0\.1:1 "):
        kept.avro(b"\0\0\0\0\7xx")
