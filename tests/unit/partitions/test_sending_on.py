"""A partition that sent its requests on comes to hold schedules: nothing is sent on ever after."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka import librdkafka
from belfry.partitions import opener
from belfry.partitions.forwarding import BEYOND, OVER, SentOn, committed_position
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.parts import PartitionParts


class Former:
    """The producer of who sent requests on; what is done with it lies in `done`."""

    group = "belfry.ingress"

    def __init__(self) -> None:
        self.done: list[Any] = []

    def open(self) -> None:
        self.done.append("fenced")

    def end_at(self, offset: int) -> None:
        self.done.append(offset)

    def close(self) -> None:
        self.done.append("closed")


def parts_of(former: Former, kept: SentOn | None) -> Any:
    def kept_position(_group: str) -> SentOn | None:
        assert former.done == ["fenced"], "the position is settled behind the fence alone"
        return kept

    return SimpleNamespace(forwarding_producer=lambda: former, kept_position=kept_position)


@pytest.mark.parametrize(
    ("kept", "low", "begins", "said"),
    [
        (None, 0, 0, [0]),
        (None, 7, 7, [7]),
        (SentOn(17), 0, 17, [17]),
        # The log has lost what was sent on.
        (SentOn(17), 40, 40, [40]),
        # An owner before has said so, and ended before its first commit.
        (SentOn(17, over=True), 0, 17, []),
    ],
)
def test_who_keeps_state_begins_where_sending_on_has_ended_and_says_so(
    kept: SentOn | None, low: int, begins: int, said: list[int]
) -> None:
    former = Former()
    assert PartitionParts.sent_on_to(parts_of(former, kept), low) == begins
    assert former.done == ["fenced", *said, "closed"]


@pytest.mark.parametrize("over", [False, True])
def test_a_worker_that_has_not_heard_of_the_changelog_sends_nothing_on(
    monkeypatch: pytest.MonkeyPatch, *, over: bool
) -> None:
    former = Former()
    positions: list[int] = []

    class Parts:
        def __init__(self, *_: object) -> None:
            self.forwarding_producer = lambda: former
            self.kept_position = lambda _group: SentOn(17, over)
            self.requests = lambda: SimpleNamespace(
                seek=positions.append, ends=lambda: (0, 20), log_end=lambda: 20
            )
            self.source_reader = self.resolver = self.intake_end = lambda *_, **__: None

        def engine(self, *_: object, forwards: bool) -> Any:
            assert forwards
            engine = SimpleNamespace(position=0)
            engine.begin_at = lambda offset: setattr(engine, "position", offset)
            return engine

    monkeypatch.setattr(opener, "PartitionParts", Parts)
    worker: Any = SimpleNamespace(identities=SimpleNamespace(seen=None))
    term: Any = SimpleNamespace(partition=4, moved=lambda _: None)
    with closing(former):
        if over:
            with pytest.raises(ConnectionError, match="holds schedules"):
                PartitionOpener._take_in_only(worker, term)
            assert former.done == ["fenced", "closed"]
        else:
            PartitionOpener._take_in_only(worker, term)
    assert positions == [17] * (not over)


@pytest.mark.parametrize(
    ("offset", "metadata", "found"),
    [
        (-1001, None, None),
        (17, "", SentOn(17)),
        (17, None, SentOn(17)),
        (BEYOND, f"{OVER}17", SentOn(17, over=True)),
    ],
)
def test_a_position_says_beside_it_that_sending_on_is_over(
    monkeypatch: pytest.MonkeyPatch, offset: int, metadata: str | None, found: SentOn | None
) -> None:
    kept = SimpleNamespace(offset=offset, metadata=metadata)
    consumer = SimpleNamespace(committed=lambda *_: [kept], close=lambda: None)
    monkeypatch.setattr(librdkafka, "Consumer", lambda _: consumer)
    assert committed_position({}, "belfry.schedules", 4) == found
