"""A delivery whose retry was refused gets one end, and nobody else's records end any."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from belfry.client.decoding import Decoder
from belfry.delivery import settling
from belfry.delivery.answers import Again
from belfry.delivery.figures import DeliveryFigures
from belfry.delivery.follow_ups import Places, Produced, retry
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.refused_retries import CODE, NotSettled, RefusedRetry, RetryReader, end_of
from belfry.delivery.settling import SETTLED, Settling
from belfry.delivery.work import Work
from belfry.engine.rejected_record import as_rejected
from belfry.schedules.rejections import Rejection
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.deliveries import RETRIES, DeliveryState
from belfry.wire import framing
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.lifecycle import decode_lifecycle
from belfry.wire.record import Headers, Origin

T0 = 1_800_000_000_000
KEY = b"k" * 32
HEAD = framing.single_object("ScheduleRequest")
PLACES = Places("s", "lifecycle", "undelivered", HEAD, b"", retry_key=KEY)
EVENT = FiredEvent("demo", "a", "f" * 32, 1, 0, T0, T0, T0)
VALUE = framing.single_object("FiredEvent") + encode_fired(EVENT)
STATE = DeliveryState((HttpTarget("http://one.example.com/"),), attempt=2)
WORK = Work(b"demo/a", VALUE, EVENT, [("trace", b"t")], STATE)
REFUSAL = Rejection("bad_signature", "The signature is none of ours.")


def reader(*keys: bytes) -> RetryReader:
    requests, events = (Decoder(name, only=True) for name in ("ScheduleRequest", "FiredEvent"))
    return RetryReader(requests, events, keys)


def refused(places: Places = PLACES, tenant: str = RETRIES) -> tuple[bytes | None, Any, Headers]:
    """A retry as a worker refuses it."""
    asked = retry(WORK, Again(T0, STATE), places)
    assert asked is not None
    source = 0, T0, asked.key, asked.value, asked.headers
    kept = as_rejected(source, REFUSAL, Origin("s", 0, 7, T0, False), tenant, 900_000)
    return kept.key, kept.value, kept.headers


def test_a_refused_retry_ends_its_delivery_and_keeps_it_for_a_replay() -> None:
    found = reader(KEY).read(*refused())
    assert found == RefusedRetry(WORK, *REFUSAL[:2])
    told, letter = end_of(found, PLACES, T0 + 5)
    assert told.topic == "lifecycle"
    assert letter.topic == "undelivered"
    event = decode_lifecycle(told.value or b"")
    assert (event.outcome, event.code, event.attempt) == ("FAILED", CODE, 2)
    assert "bad_signature: The signature is none of ours." in (event.reason or "")
    assert (letter.key, letter.value) == (WORK.key, WORK.value)
    assert ("trace", b"t") in letter.headers
    assert ("belfry-error-code", CODE.encode()) in letter.headers


def test_what_nobody_of_belfry_signed_ends_no_delivery() -> None:
    for places in (PLACES, replace(PLACES, retry_key=b"x" * 32), replace(PLACES, retry_key=b"")):
        given = refused(places)
        if places is PLACES:
            assert reader(b"old", KEY).read(*given) is not None
            continue
        with pytest.raises(NotSettled, match="not signed"):
            reader(KEY).read(*given)
    # Where workers share no secret nothing is signed.
    assert reader().read(*refused(replace(PLACES, retry_key=b""))) is not None


def test_refusals_of_others_are_none_of_its_business() -> None:
    assert reader(KEY).read(*refused(tenant="demo")) is None
    assert reader(KEY).read(None, None, []) is None


def test_a_refused_retry_that_was_cut_is_told_of() -> None:
    key, value, headers = refused(replace(PLACES, retry_key=b""))
    with pytest.raises(NotSettled, match="kept whole"):
        reader().read(key, value[: len(value) // 3], headers)


class FakeLog:
    """Keeps what is committed; or fails, as a transaction does."""

    def __init__(self) -> None:
        self.commits: list[tuple[list[Produced], dict[int, int]]] = []
        self.ends: dict[int, int] = {}
        self.fails = False

    def commit(self, records: list[Produced], progress: dict[int, DeliveryPosition]) -> None:
        if self.fails:
            raise ConnectionError("away")
        positions = {partition: each.position for partition, each in progress.items()}
        self.commits.append((records, positions))


class FakeMessage:
    """A refused record at an offset of partition 0."""

    def __init__(self, offset: int, record: tuple[bytes | None, Any, Headers]) -> None:
        self._offset = offset
        self.record = record

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self.record[0]

    def value(self) -> Any:
        return self.record[1]


def test_ends_and_positions_are_one_commit_and_counted_once_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "headers_of", lambda given: [each.record[2] for each in given])
    told: list[Counter[str]] = []
    figures = DeliveryFigures(lambda counts, _: told.append(counts))
    found = Settling(Settings(), PLACES, reader(KEY), figures)
    log: Any = FakeLog()
    forged = refused(replace(PLACES, retry_key=b""))
    batch: Any = [
        FakeMessage(offset, record)
        for offset, record in ((4, refused(tenant="demo")), (5, refused()), (7, forged))
    ]
    log.fails = True
    found._assigned({0: DeliveryPosition(4)})
    with pytest.raises(ConnectionError):
        found.settle(log, batch)
    assert told == []
    log.fails = False
    found._assigned({0: DeliveryPosition(4)})
    found.settle(log, batch)
    found.settle(log, [])
    ((records, positions),) = log.commits
    assert [each.topic for each in records] == ["lifecycle", "undelivered"]
    assert positions == {0: 8}
    assert told == [Counter({SETTLED: 1})]


def test_refusals_that_were_removed_unread_are_counted_once_it_is_committed() -> None:
    told: list[tuple[str, int]] = []
    figures = DeliveryFigures(removed=lambda *removed: told.append(removed))
    found = Settling(Settings(), PLACES, reader(KEY), figures)
    log: Any = FakeLog()
    begun = DeliveryPosition(4)
    begun.kept_from(9)
    found._assigned({0: begun, 1: DeliveryPosition(2)})
    log.fails = True
    with pytest.raises(ConnectionError):
        found.settle(log, [])
    assert told == []
    log.fails = False
    found.settle(log, [])
    assert (log.commits, told) == ([([], {0: 9})], [("rejected", 5)])
    log.ends = {1: 3}
    found.settle(log, [])
    found.settle(log, [])
    assert log.commits[1:] == [([], {1: 3})], "the end of a transaction is passed over once"
    assert told[1:] == [("rejected", 0)]
