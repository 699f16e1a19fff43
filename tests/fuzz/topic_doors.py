"""Doors of records in topics that others may write to, and of the batches that they lie in.

events      a record of the lifecycle topic: kept in the history and shown, or passed over
deliveries  a state of a delivery, and what a host asks to wait: read, or refused by name
marks       a mark of a mirror, of a changelog's signatures, of a canary: read, or refused by name
moves       records of a move of a key group: each has one outcome, and every owner goes on
behind      requests that a mirror had not judged: sorted, and each that is lost is listed
batches     what a fetch brings: records whose offsets rise, and the reader comes to its end
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import structlog

from belfry.canary.slots import CanarySlots, decode_row, encode_row
from belfry.client.decoding import Decoder
from belfry.delivery.answers import LONGEST_RETRY_AFTER_MS, retry_after_ms
from belfry.delivery.work import NotADelivery, work_of
from belfry.history.backlog import Backlog
from belfry.history.history_store import HistoryStore, page
from belfry.history.layout import SortKey, fits
from belfry.history.lifecycle_reader import LifecycleBatch, LifecycleReader
from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.fetch_position import Fetched
from belfry.kafka.signature_marks import BadMark, mark_of
from belfry.mirror.marks import UnknownMark, decode_mark, encode_mark
from belfry.mirror.requests_behind import RequestsBehind
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.limited import LimitedLogger
from belfry.tenants.deliveries import UnknownDelivery, decode_state, encode_state
from belfry.wire.framing import single_object
from belfry.wire.lifecycle_heads import Headline
from belfry.wire.moves import MAGIC
from belfry.wire.record import SentBy
from tests.fuzz.inputs import Parts, record_of
from tests.unit.engine.driver import T0

Input = Callable[[bytes], None]
WHERE: Final = ("belfry.schedules", 0)
EVER_MS: Final = 1 << 42
# Says the first of many lines that are alike.
SAID: Final = LimitedLogger(structlog.get_logger(__name__))
HEAD: Final = single_object("LifecycleEvent")


def events() -> Input:
    """Where the first byte is odd, a body behind the head that this release writes."""
    reader = LifecycleReader(None, Backlog(), HEAD)  # type: ignore[arg-type]
    offsets = count()
    kept = [HistoryStore(MemoryMap())]

    def one(data: bytes) -> None:
        offset = next(offsets)
        if offset % 500 == 0:
            kept[0] = HistoryStore(MemoryMap())
        value = HEAD + data[1:] if data and data[0] & 1 else data
        record = (offset, T0, None, value, None)
        reader.keep(LifecycleBatch(0, offset, [record], offset + 1), kept[0])
        assert kept[0].position(0) == offset + 1
        for _, head, body in reader._entries([record]):
            if fits(head.tenant, head.at_ms) and b"\0" not in head.schedule_id:
                shown(kept[0], head, body)

    return one


def shown(store: HistoryStore, head: Headline, body: bytes) -> None:
    """What was kept is found again: by its tenant, by its schedule, and among the counters."""
    start = SortKey(head.at_ms, 0, 0)
    found = page(store.of_tenant(head.tenant, start, head.at_ms + 1, [0]), 1_000).found
    assert body in [each for _, each in found]
    found = page(store.of_schedule(head.tenant, head.schedule_id, start, head.at_ms + 1), 1_000)[0]
    assert body in [each for _, each in found]
    assert store.statistics(head.tenant, head.at_ms, head.at_ms + 1, [0]).hours
    assert head.tenant in [tenant for tenant, _ in store.tenants()]


def deliveries() -> Input:
    """The state alone, or a record's value and state, by the first byte."""
    decoder = Decoder("FiredEvent", only=True)

    def one(data: bytes) -> None:
        wait_ms = retry_after_ms(data.decode("latin-1"), T0)
        assert 0 <= wait_ms <= LONGEST_RETRY_AFTER_MS
        try:
            state = decode_state(data)
            assert decode_state(encode_state(state)) == state
            assert state.order("a", 1)
            assert 0 <= state.wait_ms("fire") < EVER_MS
        except UnknownDelivery:
            pass
        parts = Parts(data)
        value, given = parts.take(), parts.take()
        try:
            work = work_of(b"key", value, [("belfry-delivery", given)], decoder)
        except NotADelivery:
            return
        assert work.hosts
        assert work.fired_key is not None

    return one


def marks() -> Input:
    """The bytes of a mark; each kind of reader is given them."""
    return one_mark


def one_mark(data: bytes) -> None:
    """The same mark when it is written again; or an error that says what is wrong with it."""
    try:
        mark = decode_mark(data)
        assert decode_mark(encode_mark(mark)) == mark
    except UnknownMark:
        pass
    try:
        signs = mark_of(data.decode(errors="replace"))
        assert mark_of(signs.text()) == signs
    except BadMark:
        pass
    row = decode_row(data)
    if row is not None:
        assert decode_row(encode_row(row)) == row
        CanarySlots([row, row]).last_asked(row.partition, row.interval_ms)


def behind() -> Input:
    """A record; its first byte says too whether it was carried, and whether it was sent on."""
    return one_behind


def one_behind(data: bytes) -> None:
    """A request is lost or judged anew, and what is of a move stops nothing."""
    key, value, headers = record_of(data)
    if data and data[0] & 16:
        value = MAGIC + (value or b"")
    sorting = RequestsBehind({0: 6})
    record = (7, T0, key, value, headers)
    by = SentBy(0, 6) if data and data[0] & 64 else None
    sorting.take(0, record, bool(data and data[0] & 32), by, (*WHERE, 7))
    lost = [each for some in sorting.lost.values() for each in some]
    assert [each.offset for each in lost] in ([], [7])
    assert sorting.under_way.keys() <= sorting.moved
    assert sorting.anew() is not None


def batches() -> Input:
    """Bytes of a fetch from offset 0 on."""
    return one_fetch


def one_fetch(data: bytes) -> None:
    """Records whose offsets rise, until all of it has been read."""
    reader = BatchReader(WHERE, 0, SAID)
    reader.add(Fetched(WHERE, 0, 0, data, ()))
    last = -1
    for _ in range(10_000):
        if reader.empty:
            return
        before = reader.position
        for offset, *_ in reader.take(500):
            assert offset > last
            last = offset
        assert reader.position >= before
    raise AssertionError("the reader does not come to its end")
