"""What was carried ahead of who sent it is left out at a take-over, and all else stays in order."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.mirror import premature
from belfry.mirror.carried import CARRIED_FROM
from belfry.mirror.premature import left_out, sender_of
from belfry.wire.origins import vouched
from belfry.wire.record import Headers, Origin, SentBy, origin_headers, sent_by_headers
from tests.unit.mirror.stand_ins import REQUESTS_TOPIC, FakeMessage

KEYS: Final = (b"a secret of workers" * 2,)
PLACE: Final = REQUESTS_TOPIC, 1


def headers(
    number: int, *, partition: int = 0, signed: bool = True, carried: bool = True
) -> Headers:
    """Those of a request that a partition sent on in a transaction, and that was carried."""
    origin = Origin(REQUESTS_TOPIC, partition, 4, 900, rerouted=True)
    found = origin_headers(origin) + sent_by_headers(partition, number)
    if carried:
        found.append((CARRIED_FROM, b"4"))
    return vouched(KEYS, b"k", b"v", found) if signed else found


def message(offset: int, given: Headers | None) -> Any:
    return FakeMessage(REQUESTS_TOPIC, offset, b"k", b"v", headers=given)  # type: ignore[arg-type]


def test_only_a_worker_says_who_sent_a_request_on() -> None:
    signed, stranger = headers(7), headers(7, signed=False)
    assert sender_of(message(3, signed), signed, PLACE, KEYS) == SentBy(0, 7)
    assert sender_of(message(3, stranger), stranger, PLACE, KEYS) is None
    assert sender_of(message(3, stranger), stranger, PLACE, ()) == SentBy(0, 7)
    assert sender_of(message(3, []), [("belfry-origin-by", b"0.7")], PLACE, ()) is None
    # One that keeps no changelog has no number.
    assert sent_by_headers(0, 0) == []


@pytest.mark.parametrize(
    ("numbers", "written", "position"),
    [({0: 7}, [], 10), ({0: 6}, [10, 12], 13), ({0: 5}, [10], 13), ({}, [10], 13)],
    ids=["all sent", "one ahead", "two ahead", "sender not followed"],
)
def test_requests_are_written_once_more_without_what_is_ahead(
    monkeypatch: pytest.MonkeyPatch, numbers: dict[int, int], written: list[int], position: int
) -> None:
    log = [message(10, None), message(11, headers(7)), message(12, headers(6))]
    again, found = left(monkeypatch, log, numbers)
    assert found == position
    assert again == [log[each - 10].headers() or [] for each in written]


def test_what_a_partition_that_is_active_by_now_has_sent_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = headers(9, carried=False)
    log = [message(10, headers(7)), message(11, here)]
    assert left(monkeypatch, log, {0: 6}) == ([here], 12)
    assert left(monkeypatch, log[1:], {0: 6}) == ([], 10)


def test_what_comes_behind_the_end_meanwhile_is_not_written_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read there, and a move that is told twice would stand in its own way."""
    log = [message(10, headers(7)), message(11, None), message(12, headers(9, carried=False))]
    assert left(monkeypatch, log, {0: 6}, end=12) == ([[]], 12)


def left(
    monkeypatch: pytest.MonkeyPatch, log: list[Any], numbers: dict[int, int], end: int = 0
) -> tuple[list[Headers], int]:
    """What is written once more of a log from offset 10 on, and from where on requests are read."""

    class FakeLog:
        def __init__(self, *_: object) -> None:
            self.at = 0

        def seek(self, offset: int) -> None:
            self.at = offset

        def read_until(self, _end: int, _most: int) -> Iterator[list[Any]]:
            # The last batch may go beyond the end.
            yield [each for each in log if self.at <= each.offset()]

        def close(self) -> None:
            pass

    monkeypatch.setattr(premature, "PartitionLog", FakeLog)
    monkeypatch.setattr(
        premature, "headers_of", lambda messages: [each.headers() for each in messages]
    )
    again: list[Headers] = []
    writer: Any = SimpleNamespace(beside=lambda *_, headers, timestamp: again.append(headers or []))
    settings = SimpleNamespace(
        topic=lambda kind: f"belfry.{kind}", worker_keys=lambda _: KEYS, kafka_properties=dict
    )
    target: Any = SimpleNamespace(settings=settings)
    found = left_out(writer, target, 1, (10, end or log[-1].offset() + 1), numbers)
    return again, found
