"""What is no delivery is put aside with a reason, and those behind it are posted."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client.decoding import Decoder
from belfry.delivery import dispatcher
from belfry.delivery.dispatcher import Dispatcher
from belfry.delivery.follow_ups import Places, metered
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.work import Work, WorkId
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.deliveries import HEADER, DeliveryState, encode_state
from belfry.wire import framing
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.metering import Usage, decode_usage

T0 = 1_800_000_000_000
EVENT = FiredEvent("demo", "a", "f" * 32, 1, 0, T0, T0, T0)
VALUE = framing.single_object("FiredEvent") + encode_fired(EVENT)
GOOD = encode_state(DeliveryState((HttpTarget("http://one.example.com/"),)))


class FakeSender:
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.handed: list[tuple[WorkId, Work]] = []

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        self.handed += pieces


class FakeMessage:
    """A delivery with a state, at an offset of partition 0."""

    def __init__(self, offset: int, state: bytes) -> None:
        self._offset, self.state = offset, state

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"key"

    def value(self) -> bytes:
        return VALUE


@pytest.mark.parametrize(
    "bad",
    [
        b'{"v":1,"targets":[{"url":"http://["}],"hosts":[]}',
        b'{"v":1,"targets":[{"url":"http://[.]/"}],"hosts":[]}',
        b'{"v":1,"targets":[{"url":"http://one.example.com/"}],"hosts":[],"attempts":"x"}',
        b"{",
    ],
)
def test_a_record_that_is_no_delivery_is_put_aside_and_the_next_is_posted(
    monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    def headers_of(messages: list[FakeMessage]) -> list[Any]:
        return [[(HEADER, message.state)] for message in messages]

    monkeypatch.setattr(dispatcher, "headers_of", headers_of)
    sender: Any = FakeSender()
    places = Places("s", "l", "undelivered", b"", b"")
    decoder = Decoder("FiredEvent", only=True)
    found = Dispatcher(Settings(), places, lambda _finished: sender, decoder)
    found._progress = {0: DeliveryPosition(0, "")}
    messages: Any = [FakeMessage(0, bad), FakeMessage(1, GOOD)]
    found._take(messages)
    found._hand_in()
    (letter,) = found._gathered.to_write(0)
    assert (letter.topic, letter.key, letter.value) == ("undelivered", b"key", VALUE)
    assert (HEADER, bad) in letter.headers
    assert dict(letter.headers)["belfry-error-code"] == b"not_a_delivery"
    assert found._progress[0].done_with(0)
    assert [work_id.offset for work_id, _ in sender.handed] == [1]


def test_what_was_delivered_is_metered_where_usage_is_counted() -> None:
    hour_ms = 3_600_000
    places = Places("s", "l", "u", b"", b"", metering="m", metering_ms=hour_ms)
    assert metered({"a": 2}, Places("s", "l", "u", b"", b""), 7) == []
    assert metered({}, places, 7) == []
    (made,) = metered({"a": 2}, places, 5 * hour_ms + 7)
    assert (made.topic, made.key) == ("m", b"a")
    begin, end = 5 * hour_ms, 6 * hour_ms
    assert decode_usage(made.value) == Usage(tenant="a", from_ms=begin, until_ms=end, delivered=2)
