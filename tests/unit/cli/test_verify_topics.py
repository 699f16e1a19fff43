"""Topics read to an end of before: what ends the wait for a record that does not come."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.cli import verify_topics
from belfry.cli.verify_topics import ANSWER_S, NothingComes, TopicReader

TOPIC = "belfry.fired.ash"


class Log:
    """A consumer of two partitions; in the first one readers stop at a transaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.polls = 0
        monkeypatch.setattr(verify_topics, "monotonic", lambda: self.now_s)

    def reader(self) -> TopicReader:
        cluster: Any = SimpleNamespace(
            consumer=lambda *_, **__: self, admin=lambda: None, reach=lambda _: None
        )
        return TopicReader(cluster)

    def assign(self, *_: object) -> None:
        """Read these, or nothing."""

    unassign = assign

    def poll(self, _timeout: float) -> Any:
        """The next record, of the second partition, a second later: it has always one more."""
        self.polls += 1
        assert self.polls < 10 * ANSWER_S, "it waits for ever"
        self.now_s += 1
        return message(1, self.polls - 1)

    def consume(self, *_: object) -> list[Any]:
        """No more at once."""
        return []


def message(partition: int, offset: int, error: int | None = None) -> Any:
    told = None if error is None else KafkaError(error)
    return SimpleNamespace(
        topic=lambda: TOPIC, partition=lambda: partition, offset=lambda: offset, error=lambda: told
    )


def test_a_partition_that_is_held_back_ends_the_wait_though_others_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(monkeypatch)
    with pytest.raises(NothingComes, match="was not read to its end"):
        list(log.reader().read({(TOPIC, 0): 0, (TOPIC, 1): 0}, {(TOPIC, 0): 5, (TOPIC, 1): 3}))
    assert log.polls == pytest.approx(ANSWER_S, abs=5)


def test_who_takes_long_over_what_was_read_goes_on_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(monkeypatch)
    found: Iterator[list[Any]] = log.reader().read({(TOPIC, 1): 0}, {(TOPIC, 1): 3})
    offsets = []
    for some in found:
        offsets += [each.offset() for each in some]
        log.now_s += 2 * ANSWER_S
    assert offsets == [0, 1, 2]
