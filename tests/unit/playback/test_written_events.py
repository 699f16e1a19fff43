"""Events of output topics beside those of a played step: by id, and byte by byte."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine.effects import Effects
from belfry.playback.comparing import StepDifference
from belfry.playback.logged import LoggedStep
from belfry.playback.written_events import WrittenEvents
from belfry.store.layout.manifests import Manifest
from belfry.wire.record import Headers

STEP: Final = LoggedStep(20, 30, 5_000, {}, {}, Manifest(7, 3, 90, 0, 2, 1, bytes(16)), True)
HEADERS: Final[Headers] = [("a", b"1"), ("belfry-scheduled-at", b"x"), ("belfry-occurrence", b"4")]


def judged(
    written: WrittenEvents,
    value: bytes | None = b"v",
    *,
    identity: bytes = b"f1",
    topic: str = "t",
    key: bytes = b"k",
    headers: Headers = HEADERS,
    enveloped: bool = False,
) -> list[StepDifference | None]:
    """What is said of one played event."""
    effects = Effects(fired=[(topic, key, None, value, headers)], fire_ids=[identity])
    return list(written.differing(STEP, effects, lambda _: enveloped))


def one(value: bytes | None = b"v", headers: Headers = HEADERS) -> WrittenEvents:
    found = WrittenEvents()
    found.add(b"f1", "t", b"k", value, headers)
    return found


def test_an_event_that_is_there_is_the_same_or_is_told() -> None:
    assert judged(one()) == [None]
    assert judged(one(), b"other") == [
        StepDifference(
            "event", 7, 30, "f1", "an event in t with other bytes",
            "key b'k', value 5 bytes, headers a, belfry-scheduled-at, belfry-occurrence",
        )
    ]  # fmt: skip
    (found,) = judged(one(), None)
    assert found is not None
    assert "value null" in found.played
    for other in (judged(one(), topic="u"), judged(one(), key=b"l")):
        assert other != [None]
    assert judged(one(), headers=[*HEADERS, ("b", None)]) != [None]


def test_an_event_that_is_not_there_tells_nothing() -> None:
    assert judged(one(), identity=b"f2") == []
    assert judged(WrittenEvents()) == []


def test_of_events_with_one_id_the_first_counts() -> None:
    written = one()
    written.add(b"f1", "t", b"k", b"other", HEADERS)
    assert written.count == 2
    assert judged(written) == [None]
    assert judged(written, b"other") != [None]


@pytest.mark.parametrize("frame", [b"\xc3\x01" + bytes(8), b"\0" + bytes(4)])
def test_an_envelope_counts_without_its_frame_and_a_payload_with_it(frame: bytes) -> None:
    written = one(frame + b"body")
    assert judged(written, b"body", enveloped=True) == [None]
    assert judged(written, frame + b"body", enveloped=True) == [None]
    assert judged(written, b"body") != [None]
    assert judged(written, b"ody", enveloped=True) != [None]
    assert judged(one(b"\1" + bytes(4) + b"body"), b"body", enveloped=True) != [None]


def test_the_instant_of_an_extra_event_does_not_count_and_all_else_does() -> None:
    extra: Headers = [("belfry-scheduled-at", b"x"), ("belfry-occurrence", b"-1"), ("a", b"1")]
    later: Headers = [("belfry-scheduled-at", b"y"), *extra[1:]]
    assert judged(one(headers=extra), headers=later) == [None]
    assert judged(one(headers=extra), headers=[*later[:2], ("a", b"2")]) != [None]
    usual: Headers = [("belfry-scheduled-at", b"y"), *HEADERS[2:], HEADERS[0]]
    assert judged(one(), headers=usual) != [None]
