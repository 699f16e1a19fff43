"""A worker that waits for a broker says for whom, with address and cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from belfry.client.faults import Faults
from belfry.client.kafka import Cluster
from belfry.kafka.wanted_topics import TopicSpec
from belfry.process.cluster_start import _absent, _await_cluster, asker, find
from belfry.settings import Settings

REFUSED = "Connect to ipv4#127.0.0.1:1 failed: Connection refused"


class Admin:
    """Answers at the third time; before that its client reports an error."""

    def __init__(self, faults: Faults, code: int) -> None:
        self._faults, self._code, self._asked = faults, code, 0

    def list_topics(self, timeout: float) -> Any:
        self._asked += 1
        if self._asked == 3:
            return type("Cluster", (), {"cluster_id": "abc"})
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, _timeout: float) -> None:
        self._faults(KafkaError(self._code, REFUSED))


@pytest.mark.parametrize(
    ("code", "what", "level"),
    [
        (KafkaError._TRANSPORT, "no Kafka broker answers yet", "warning"),
        (KafkaError._AUTHENTICATION, "no secure connection to Kafka", "error"),
    ],
)
def test_what_a_start_waits_for_is_told(
    monkeypatch: pytest.MonkeyPatch, code: int, what: str, level: str
) -> None:
    monkeypatch.setattr("belfry.host.machine.sleep", lambda _seconds: None)
    faults, told = Faults(), list[str]()
    admin: Any = Admin(faults, code)
    with capture_logs() as lines:
        assert _await_cluster(admin, faults, "k:1", told.append) == "abc"
    assert len(told) == len(lines) == 2
    assert told[0].startswith(f"{what} at k:1: {REFUSED}. ")
    assert (lines[0]["event"], lines[0]["at"], lines[0]["log_level"]) == (what, "k:1", level)
    assert lines[0]["cure"]


def test_who_asks_for_a_topic_by_its_name_does_not_make_it() -> None:
    """The brokers are librdkafka's own, which create topics by themselves."""
    mock = {"test.mock.num.brokers": 1, "log_level": 0}
    for admin in (asker(Settings(kafka=mock)), Cluster("nowhere:1", mock).admin()):
        admin.list_topics("belfry.changelog", timeout=10)
        assert not admin.list_topics(timeout=10).topics


def test_what_was_waited_for_is_told_no_longer_than_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = list[str]()

    def step(name: str) -> Any:
        """A step of the start, which has nothing to say."""

        def taken(*_: Any) -> list[Any]:
            told.append(name)
            return []

        return taken

    def frames(_registry: Any, _settings: Any, tell: Any) -> str:
        tell("the registry is away")
        return "frames"

    class Starting(Admin):
        def __init__(self, properties: Any) -> None:
            super().__init__(properties["error_cb"], KafkaError._TRANSPORT)

        def describe_topics(self, collection: Any) -> dict[str, Any]:
            described = SimpleNamespace(partitions=range(16))
            answer = SimpleNamespace(result=lambda _within_s: described)
            return dict.fromkeys(collection.topic_names, answer)

    here = "belfry.process.cluster_start"
    monkeypatch.setattr("belfry.host.machine.sleep", lambda _seconds: None)
    monkeypatch.setattr("belfry.kafka.librdkafka.AdminClient", Starting)
    monkeypatch.setattr(f"{here}.open_registry", lambda _settings: "registry")
    monkeypatch.setattr(f"{here}.startup.frames", frames)
    steps = (
        *("lacking.missing_rights", "topics.create", "topics.missing"),
        *("check_at_start", "compare_at_start"),
    )
    for name in steps:
        monkeypatch.setattr(f"{here}.{name}", step(name))
    with capture_logs() as lines:
        found = find(Settings(bootstrap_servers="k:1"), told.append)
    assert found.cluster_id == "abc"
    # Homes are what was agreed, however many partitions there are by now.
    assert (found.counted.homes, found.counted.count) == (4, 16)
    assert all(each.startswith("no Kafka broker answers yet at k:1") for each in told[:2])
    assert told[2:] == ["", *steps, "the registry is away", ""]
    assert lines[-1]["problem"] == "the registry is away"


@pytest.mark.parametrize(("creates", "asked"), [(True, 3), (False, 1)])
def test_a_broker_that_has_not_heard_of_a_new_topic_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, creates: bool, asked: int
) -> None:
    spec = TopicSpec("belfry.changelog", 4, 3, {})
    answers = [[spec], [spec], []]
    looks = list[int]()

    def missing(_admin: Any, _settings: Any) -> list[TopicSpec]:
        looks.append(1)
        return answers[len(looks) - 1]

    monkeypatch.setattr("belfry.host.machine.sleep", lambda _seconds: None)
    monkeypatch.setattr("belfry.kafka.topics.missing", missing)
    admin: Any = None
    wait_s = 30.0 if creates else 0.0
    assert _absent(admin, Settings(), wait_s) == ([] if creates else ["belfry.changelog"])
    assert len(looks) == asked
