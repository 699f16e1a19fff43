"""A read is answered only if its owner was still the owner when the rows were read.

commits  sent ─ acknowledged            sent ─ fenced
reads            │ within the lease │ later: not before a later commit is acknowledged
"""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects
from belfry.engine.read_lease import (
    LEASE_MS,
    RENEW_MS,
    WANTED_MS,
    ReadLease,
)
from belfry.group.silence import PROMPT_MS, Silence
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer
from belfry.partitions.leasing import OUTWAIT_MS, outwait_ms
from belfry.store.layout.manifests import Manifest, decode_manifest, encode_manifest


def settled(lease: ReadLease) -> bool:
    """Whether no transaction is about to end."""
    return lease.settled


def commit(lease: ReadLease, sent_ms: float, *, may: bool = True) -> bool:
    """A commit that was sent then and acknowledged; whether its manifest tells of a lease."""
    takes = lease.begin(sent_ms, may=may)
    lease.serves()
    lease.sent(sent_ms)
    lease.ends()
    assert not settled(lease)
    lease.committed()
    assert settled(lease)
    return takes


def test_of_a_new_lease_the_first_reader_wakes_the_owner_and_nobody_counts_as_asked() -> None:
    lease = ReadLease()
    assert not lease.held
    assert settled(lease)
    assert lease.asked(0.0)
    assert not lease.asked(1.0), "the commit is asked for already"


def test_a_lease_is_wanted_for_so_long_after_the_last_read_to_the_millisecond() -> None:
    for later_ms, takes in ((WANTED_MS, True), (WANTED_MS + 1, False)):
        lease = ReadLease()
        lease.asked(1_000.0)
        assert lease.begin(1_000.0 + later_ms, may=True) == takes


def test_without_readers_no_lease_is_held() -> None:
    """So a successor never waits for it, and the first read waits for a commit sent after it."""
    lease = ReadLease()
    assert not commit(lease, 1_000.0)
    assert lease.covers(1_000.0)
    assert not lease.covers(1_000.1)
    assert lease.asked(1_000.1)
    assert lease.wanted
    assert not lease.asked(1_000.2), "the owner was woken already"
    assert commit(lease, 1_001.0)
    assert lease.covers(1_000.2)


def test_a_lease_counts_from_before_the_commit_was_sent_and_ends_by_itself() -> None:
    lease = ReadLease()
    lease.asked(1_000.0)
    commit(lease, 1_000.0)
    assert lease.covers(1_000.0 + LEASE_MS)
    assert not lease.covers(1_000.1 + LEASE_MS), "as after a SIGSTOP"


def test_a_lease_in_use_is_renewed_long_before_its_end() -> None:
    lease = ReadLease()
    lease.asked(1_000.0)
    commit(lease, 1_000.0)
    assert not lease.asked(1_000.0 + RENEW_MS)
    assert lease.asked(1_000.1 + RENEW_MS)
    assert lease.covers(1_000.1 + RENEW_MS)
    assert not commit(lease, 1_001.0 + RENEW_MS + WANTED_MS), "nobody has read for a while"
    assert not lease.held


def test_what_was_read_after_a_commit_was_sent_waits_for_the_next_one() -> None:
    lease = ReadLease()
    lease.begin(1_000.0, may=False)
    lease.serves()
    lease.sent(1_000.0)
    assert lease.asked(1_001.0)
    lease.committed()
    assert lease.wanted
    assert not lease.covers(1_001.0)


def test_a_lease_ends_before_the_manifest_that_says_so_is_sent() -> None:
    """A successor looks at the last manifest alone."""
    lease = ReadLease()
    lease.asked(1_000.0)
    assert commit(lease, 1_000.0)
    assert not lease.begin(1_010.0, may=False)
    assert not lease.held
    assert not lease.covers(1_010.0)


def test_a_lease_that_begins_does_not_count_before_it_is_acknowledged() -> None:
    lease = ReadLease()
    commit(lease, 1_000.0)
    lease.asked(1_001.0)
    assert lease.begin(1_002.0, may=True)
    lease.sent(1_002.0)
    assert not lease.covers(1_001.0)
    lease.aborted()
    assert not lease.covers(1_001.0)


@pytest.mark.parametrize("heard_late_ms", [0.0, 100.0, PROMPT_MS])
def test_the_lease_is_over_before_a_standby_may_fence(heard_late_ms: float) -> None:
    """However a standby hears of the last commit: it hears of it after it was sent."""
    timeout_ms = 1_000.0
    lease = ReadLease()
    lease.asked(5_000.0)
    commit(lease, 5_000.0)
    silence = Silence(timeout_ms, 0.0)
    silence.heard(5_000.0 + heard_late_ms)
    at_ms = 5_000.0
    while not silence.over(at_ms):
        silence.here(at_ms)
        at_ms += 10
    assert not lease.covers(at_ms)


@pytest.mark.parametrize(
    ("lent_ms", "appended_ms", "waits_ms"),
    [
        (None, 5_000, 0.0),
        (4_000, 4_300, OUTWAIT_MS - 300),
        (4_000, 5_000, 0.0),
        (4_000, 9_000, 0.0),
        (4_000, 3_000, OUTWAIT_MS),
        (4_000, None, OUTWAIT_MS),
    ],
    ids=["no lease", "amid it", "at its end", "long over", "a clock that went back", "untold"],
)
def test_a_successor_waits_for_the_end_of_the_lease(
    lent_ms: int | None, appended_ms: int | None, waits_ms: float
) -> None:
    assert outwait_ms(lent_ms, appended_ms) == waits_ms
    assert OUTWAIT_MS > LEASE_MS


@pytest.mark.parametrize("leased", [False, True])
def test_a_manifest_tells_of_the_lease(leased: bool) -> None:
    manifest = Manifest(1, 2, 3, 4, 5, 6, bytes(16), leased)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert encode_manifest(manifest)[2:4] == bytes((0, leased))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    client = MagicMock()
    monkeypatch.setattr(librdkafka, "Producer", lambda _properties: client)
    return client


def producer(now: list[float]) -> PartitionProducer:
    """One whose clock is the list's first number."""
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    clock: Any = MagicMock()
    clock.monotonic_ms.side_effect = clock.wall_ms.side_effect = lambda: now[0]
    clock.both_ms.side_effect = lambda: (now[0], now[0])
    return PartitionProducer({}, 0, ProducerSurroundings(output_topics, clock, MagicMock()))


def test_rows_may_be_stale_from_the_acknowledged_manifest_to_the_written_store(
    client: MagicMock,
) -> None:
    """In between, the transaction may be visible, and its verdicts with it."""
    now, told, seen = [1_000.0], [], []
    message = MagicMock(offset=lambda: 7, timestamp=lambda: (2, 1_000))
    client.produce.side_effect = lambda *_, on_delivery, **__: told.append(on_delivery)

    def end(_timeout: float) -> None:
        seen.append(one.lease.settled)
        now[0] = 1_050.0
        told.pop()(None, message)
        seen.append(one.lease.settled)

    client.commit_transaction.side_effect = end
    one = producer(now)
    one.lease.asked(990.0)
    one.lease.begin(995.0, may=True)
    one.commit(Effects(rows={b"\0": b"manifest"}))
    assert seen == [True, False]
    assert not settled(one.lease)
    one.lease.committed()
    assert settled(one.lease)
    assert one.lease.covers(1_000.0 + LEASE_MS)
    assert not one.lease.covers(1_050.0 + LEASE_MS), "the lease counts from the sending"


def test_a_roll_back_proves_nothing(client: MagicMock) -> None:
    now = [1_000.0]
    error = KafkaError(KafkaError.INVALID_RECORD, "no", False, False, True)
    client.commit_transaction.side_effect = KafkaException(error)
    one = producer(now)
    one.lease.asked(990.0)
    one.lease.begin(995.0, may=True)
    with pytest.raises(Aborted):
        one.commit(Effects(rows={b"\0": b"manifest"}))
    one.lease.aborted()
    assert settled(one.lease)
    assert not one.lease.covers(990.0)
