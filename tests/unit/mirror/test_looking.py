"""What is looked at of both sides: which requests are lost, and which come here anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from belfry.mirror import looking
from belfry.mirror.losses import LostRequest
from belfry.mirror.marks import MirrorMark
from belfry.wire.record import Origin, SourceRecord, origin_headers
from tests.acceptance.harness.requests import request
from tests.unit.mirror.stand_ins import REQUESTS_TOPIC, FakeLogs, fake_side

MARK: Final = MirrorMark("a", "log-a", "log-b", 1, {"changelog": 5, "schedules": 43}, judged=41)


def asked(offset: int, sent_on: tuple[int, int] | None = None) -> SourceRecord:
    """A request, which a worker may have sent on from a partition and offset."""
    headers = None
    if sent_on is not None:
        headers = origin_headers(Origin(REQUESTS_TOPIC, *sent_on, 900, rerouted=True))
    return offset, 900, b"shop", request("shop", f"at-{offset}", at=5_000), headers


def test_requests_that_were_carried_come_anew_also_where_they_had_been_sent_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = {
        0: [asked(40), asked(42), asked(43)],
        # Sent on by the source from a request that was carried and not judged, or long before.
        1: [asked(44, (0, 42)), asked(45, (0, 40)), asked(46, (0, 43))],
    }

    def requests(_source: object, partition: int, at: int) -> Iterator[SourceRecord]:
        return (each for each in logs[partition] if each[0] >= at)

    monkeypatch.setattr(looking, "_requests", requests)
    monkeypatch.setattr(looking, "_rows", lambda *_: iter(()))
    target: Any = fake_side("b", FakeLogs(), MARK, homes=2)
    found = list(looking.losses(fake_side("a", FakeLogs(), homes=2), target))
    assert [(at, each.offset) for at, each in found if isinstance(each, LostRequest)] == [
        (0, 43),
        (1, 45),
        (1, 46),
    ]


@pytest.mark.parametrize(("theirs", "mine"), [(1, 2), (2, 2), (2, 1)])
def test_what_a_side_was_given_since_it_took_over_hides_no_loss(
    monkeypatch: pytest.MonkeyPatch, theirs: int, mine: int
) -> None:
    marks = MARK, None
    monkeypatch.setattr(looking, "_requests", lambda *_: iter([asked(44)]))
    monkeypatch.setattr(looking, "_rows", lambda *_: iter(()))
    target: Any = fake_side("b", FakeLogs(), homes=mine, grown_from=1)
    target.mark = lambda each: marks[each]
    found = looking.losses(fake_side("a", FakeLogs(), homes=theirs), target)
    assert [at for at, each in found if isinstance(each, LostRequest)] == list(range(theirs))
