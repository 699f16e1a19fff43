"""Many requests at once: batches under way, verdicts in order, and what an error leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from belfry.client import exchange
from belfry.client.errors import MissingTopic, NoVerdict, Unavailable
from belfry.client.exchange import AHEAD, HEAVY_BYTES, TOGETHER, Exchange
from belfry.client.portable import names_of, request_fields
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire.quick_writing import Ready

MANY = TOGETHER * AHEAD
# Requests of a batch that lie in Kafka where the next one was lost.
KEPT = 18
# Bytes of a request that make no batch heavy.
SIZE = HEAVY_BYTES // TOGETHER


class Kafka:
    """The writer, and the answers; each request that is written is accepted, unless it is dumb.

    A write fails that is handed over in the batch `loses`, which is known when it is heard of.
    """

    def __init__(
        self, *, refuses: int | None = None, loses: int | None = None, dumb: str | None = None
    ) -> None:
        self.written: list[str] = []
        self.batches: list[Batch] = []
        # For each batch, whether Kafka had all others by then.
        self.alone: list[bool] = []
        self.waited_for: set[str] = set()
        self.first_wait: int | None = None
        self._refuses, self._loses, self._dumb = refuses, loses, dumb

    @property
    def sizes(self) -> list[int]:
        return [len(each.sent) for each in self.batches]

    def hand_over(self, requests: Sequence[tuple[dict[str, Any], Verdict]]) -> Batch:
        if len(self.batches) == self._refuses:
            raise MissingTopic("no such topic")
        assert {sent.request_id for _, sent in requests} <= self.waited_for
        assert all(each.heard for each in self.batches[:-1]), "one batch is on its way at most"
        self.alone.append(all(each.heard for each in self.batches))
        self.batches.append(Batch([sent for _, sent in requests]))
        self.written += [sent.schedule_id for _, sent in requests]
        return self.batches[-1]

    def hear(self, batch: Batch) -> None:
        batch.heard = True
        batch.failed = self.batches.index(batch) == self._loses

    def placed(self, batch: Batch) -> Iterator[Verdict]:
        assert batch.heard
        for number, sent in enumerate(batch.sent):
            if batch.failed and number == KEPT:
                raise Unavailable("not confirmed")
            yield replace(sent, source_offset=7)

    @contextmanager
    def expecting_all(self, request_ids: Sequence[str]) -> Iterator[list[Kafka]]:
        assert not self.waited_for.intersection(request_ids)
        self.waited_for.update(request_ids)
        try:
            yield [self] * len(request_ids)
        finally:
            self.waited_for.difference_update(request_ids)

    def within(self, timeout_s: float, sent: Verdict) -> Verdict | None:
        assert sent.source_offset == 7
        assert timeout_s > 0
        if self.first_wait is None:
            self.first_wait = len(self.written)
        return None if sent.schedule_id == self._dumb else replace(sent, outcome=Outcome.ACCEPTED)


class Batch:
    """Requests that were handed over."""

    def __init__(self, sent: list[Verdict]) -> None:
        self.sent = sent
        self.heard = self.failed = False
        self.sizes = [SIZE] * len(sent)


def asked(number: int) -> dict[str, Any]:
    """A request; each tenth has an id that no worker takes."""
    schedule_id = f"s{number}" if number % 10 else "x" * 1_000
    line = {
        "tenant": "demo",
        "schedule_id": schedule_id,
        "kind": "AT",
        "at": "2040-01-01T00:00:00Z",
    }
    return request_fields(line)


def ask(kafka: Kafka, numbers: Iterator[int]) -> Iterator[Verdict]:
    exchanged = Exchange(kafka, kafka)  # type: ignore[arg-type]
    return exchanged.ask_all(map(asked, numbers), 1.0)


def names(verdicts: Iterator[Verdict]) -> list[str]:
    return [each.schedule_id for each in verdicts]


def test_verdicts_come_in_order_with_some_batches_under_way() -> None:
    kafka = Kafka()
    found = list(ask(kafka, iter(range(MANY + 2 * TOGETHER + 5))))
    expected = [Outcome.ACCEPTED if n % 10 else Outcome.REJECTED for n in range(len(found))]
    assert [each.outcome for each in found] == expected
    assert [each.schedule_id for each in found if each.outcome is Outcome.ACCEPTED] == kafka.written
    assert len(found) == MANY + 2 * TOGETHER + 5
    assert kafka.sizes == [TOGETHER * 9 // 10] * (AHEAD + 2) + [4]
    assert kafka.first_wait == MANY * 9 // 10, "before any verdict is waited for"
    assert not kafka.waited_for


def test_an_error_of_the_source_comes_behind_the_verdicts_of_what_was_written() -> None:
    def numbers() -> Iterator[int]:
        yield from range(3 * TOGETHER + 1)
        raise ValueError("line 7")

    kafka, found = Kafka(), list[str]()
    with pytest.raises(ValueError, match="line 7"):
        names(each for each in _kept(ask(kafka, numbers()), found))
    assert len(found) == 3 * TOGETHER
    assert len(kafka.written) == 3 * TOGETHER * 9 // 10
    assert not kafka.waited_for


def test_an_error_of_a_write_comes_behind_the_verdicts_of_what_was_written() -> None:
    kafka, found = Kafka(refuses=2), list[str]()
    with pytest.raises(MissingTopic, match="no such topic"):
        names(each for each in _kept(ask(kafka, iter(range(MANY))), found))
    assert len(found) == 2 * TOGETHER
    assert not kafka.waited_for


def test_a_write_that_was_lost_ends_the_writing_and_comes_behind_the_verdicts() -> None:
    kafka, found = Kafka(loses=2), list[str]()
    with pytest.raises(Unavailable, match="not confirmed"):
        names(each for each in _kept(ask(kafka, iter(range(MANY))), found))
    refused = 3
    assert len(found) == 2 * TOGETHER + KEPT + refused
    assert len(kafka.batches) == 4, "one was on its way when the loss was heard of"
    assert not kafka.waited_for


def test_a_heavy_batch_has_reached_kafka_before_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "HEAVY_BYTES", 1_000)
    kafka = Kafka()
    for verdict in ask(kafka, iter(range(MANY))):
        assert verdict.outcome
    assert kafka.alone == [True] * AHEAD


def test_a_light_batch_is_on_its_way_while_the_next_one_is_made() -> None:
    kafka = Kafka()
    assert len(list(ask(kafka, iter(range(MANY))))) == MANY
    assert kafka.alone == [True] + [False] * (AHEAD - 1)


def test_a_caller_that_ends_early_leaves_no_wait_behind() -> None:
    kafka = Kafka()
    verdicts = ask(kafka, iter(range(2 * MANY)))
    assert next(verdicts).schedule_id == "x" * 1_000
    assert next(verdicts).schedule_id == "s1"
    assert len(kafka.waited_for) == MANY * 9 // 10
    verdicts.close()  # type: ignore[attr-defined]
    assert not kafka.waited_for


def test_a_verdict_that_does_not_come_ends_all_waits() -> None:
    kafka, found = Kafka(dumb="s13"), list[str]()
    with pytest.raises(NoVerdict, match="No verdict on demo/s13 within 1 s"):
        names(each for each in _kept(ask(kafka, iter(range(2 * MANY))), found))
    assert found[-1] == "s12"
    assert not kafka.waited_for


def test_ready_requests_and_others_have_an_id_each_and_come_in_order() -> None:
    kafka = Kafka()
    exchanged = Exchange(kafka, kafka)  # type: ignore[arg-type]
    mixed = [Ready("demo", f"r{n}", b"", b"") if n % 2 else asked(n) for n in range(1, 9)]
    found = list(exchanged.ask_all(mixed, 1.0))
    assert [each.schedule_id for each in found] == [names_of(each)[1] for each in mixed]
    ids = [sent.request_id or "" for sent in kafka.batches[0].sent]
    assert len(set(ids)) == len(ids) == 8
    assert {len(each) for each in ids} == {32}
    assert [each["request_id"] for each in mixed if isinstance(each, dict)] == ids[1::2]


def test_a_batch_of_refusals_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "TOGETHER", 1)
    kafka = Kafka()
    assert [each.outcome for each in ask(kafka, iter([0, 10]))] == [Outcome.REJECTED] * 2
    assert not kafka.written
    assert list(ask(kafka, iter([]))) == []


def _kept(verdicts: Iterator[Verdict], found: list[str]) -> Iterator[Verdict]:
    """The verdicts, whose names are kept even if an error ends them."""
    for each in verdicts:
        found.append(each.schedule_id)
        yield each
