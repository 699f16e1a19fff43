"""Topics that cannot be used in time are told in a sentence that can be read."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from belfry.kafka import topics
from belfry.kafka.wanted_topics import TopicSpec


class NoLeaders:
    """An admin whose cluster makes topics, and gives them no leaders."""

    def create_topics(self, new: list[Any], **_: Any) -> dict[str, Future[None]]:
        done: Future[None] = Future()
        done.set_result(None)
        return {each.topic: done for each in new}

    def list_topics(self, **_: Any) -> Any:
        return SimpleNamespace(topics={})


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (2, "topics t0, t1 have no leader after"),
        (5, "topics t0, t1, t2, t3, t4 have no leader after"),
        (1_234, "topics t0, t1, t10, t100, t1000 and 1,229 more have no leader after"),
    ],
)
def test_topics_without_leaders_are_named_and_counted(
    number: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "CREATE_S", 0.01)
    wanted = [TopicSpec(f"t{each}", 1, 1, {}) for each in range(number)]
    admin: Any = NoLeaders()
    with pytest.raises(KafkaException, match=told):
        topics.create_topics(admin, wanted)
