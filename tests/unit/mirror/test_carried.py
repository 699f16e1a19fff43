"""What is carried means the same in the other cluster, and nobody fires by it there."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.mirror.carried import (
    CARRIED_FROM,
    carried_from,
    carried_headers,
    carried_rows,
    translated,
)
from belfry.mirror.comparing import Digests, Owners, RowDifference, compared
from belfry.placement.key_groups import KeyGroups
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.groups import HERE, NOWHERE, GroupRow, encode_group, lies_key
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.layout.pending_bytes import due_and_seq, with_seq
from belfry.store.ordered_map import MemoryMap
from belfry.store.recovery import EARLIER_INPUT, activation_manifest, fence_manifest
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.origins import believed_origin, vouched
from belfry.wire.record import ORIGIN_TENANT, Origin, SourceRecord, origin_headers, stamp_of

A = Identity("cluster-a", "log-a", "in-a", 3)
B = Identity("cluster-b", "log-b", "in-b", 7)
ROW = encode_pending(
    Pending(
        1_000, 1_000, 0, 17, 17, 1, 0, 0, 1_000, 0, b"shop", b"order", b"", b"", None, b"", b"",
        b"x",
    )
)  # fmt: skip
MANIFEST = Manifest(60, 2, 50, 900, 1, 4, bytes(16))
PLACE = ("belfry.schedules", 2)


def test_sequences_become_those_of_an_earlier_input_and_all_else_stays() -> None:
    rows = [(b"shop/order", ROW), (b"shop/gone", None)]
    rows.append((keys.manifest_key(60), encode_manifest(MANIFEST)))
    found, _, judged = carried_rows(rows, "cluster-b")
    assert judged == MANIFEST.position
    assert due_and_seq(found[0][1] or b"") == (1_000, EARLIER_INPUT + 17)
    assert with_seq(found[0][1] or b"", 17) == ROW
    assert found[1:] == rows[1:]


def test_the_identity_of_the_source_is_carried_and_a_fence_is_not() -> None:
    rows = [(keys.IDENTITY_KEY, encode_identity(A)), (keys.IDENTITY_KEY, encode_identity(B))]
    found = carried_rows(rows, "cluster-b")
    assert found.rows == rows[:1]
    assert found.generation == 3


def test_rows_that_are_cut_amid_a_transaction_tell_nothing_of_requests() -> None:
    rows = [(keys.manifest_key(60), encode_manifest(MANIFEST)), (b"shop/order", ROW)]
    assert carried_rows(rows, "cluster-b").judged is None
    assert carried_rows([], "cluster-b").judged is None


def test_a_copy_that_has_only_begun_says_whose_it_is() -> None:
    replay = Replay(ScheduleStore(MemoryMap()))
    replay.apply([(keys.IDENTITY_KEY, encode_identity(A)), (b"shop/order", ROW)], [0, 1], 0)
    assert replay.identity == A


def test_a_request_counts_from_where_and_when_it_was_received_first() -> None:
    record: SourceRecord = (40, 1_000, b"shop", b"value", [("mine", b"1")])
    headers = carried_headers(record, PLACE, ())
    there = (3, 9_000, b"shop", b"value", headers)
    assert believed_origin((), there, *PLACE) == Origin(*PLACE, 40, 1_000, rerouted=True)
    assert carried_from(headers) == 40
    assert carried_from([(CARRIED_FROM, b"9" * 5_000)]) is None
    assert headers[0] == ("mine", b"1")


@pytest.mark.parametrize("secrets", [(), (b"secret",)], ids=["unsigned", "signed"])
def test_one_that_was_sent_on_keeps_its_origin(secrets: tuple[bytes, ...]) -> None:
    first = Origin("belfry.schedules", 5, 11, 500, rerouted=True)
    sent = vouched(secrets, b"shop", b"value", origin_headers(first))
    headers = carried_headers((40, 1_000, b"shop", b"value", sent), PLACE, secrets)
    there = (3, 9_000, b"shop", b"value", headers)
    assert believed_origin(secrets, there, *PLACE) == first
    # On the way back it is carried once more.
    back = carried_headers(there, PLACE, secrets)
    assert [name for name, _ in back].count(CARRIED_FROM) == 1
    assert carried_from(back) == 3
    assert believed_origin(secrets, (77, 9_500, b"shop", b"value", back), *PLACE) == first


def test_what_a_stranger_says_of_an_origin_is_not_carried() -> None:
    forged = origin_headers(Origin("belfry.schedules", 5, 11, 500, rerouted=True))
    forged.append((ORIGIN_TENANT, b"victim"))
    headers = carried_headers((40, 1_000, b"shop", b"value", forged), PLACE, (b"secret",))
    there = (3, 9_000, b"shop", b"value", headers)
    assert believed_origin((b"secret",), there, *PLACE).offset == 40
    # The mirror vouches for what it writes.
    assert stamp_of(headers) is None


@settings(deadline=None)
@given(st.data())
def test_requests_are_read_on_at_the_first_that_was_not_taken_in(data: st.DataObject) -> None:
    sources = sorted(data.draw(st.sets(st.integers(0, 60), max_size=20)))
    places = sorted(
        data.draw(st.sets(st.integers(0, 80), min_size=len(sources), max_size=len(sources)))
    )
    # Before those lie requests of another source, whose offsets say nothing of this one.
    other = data.draw(st.lists(st.integers(0, 200), max_size=20))
    low = len(other)
    places = [low + each for each in places]
    end = data.draw(st.integers((places or [low])[-1] + 1, low + 90))
    lies = dict(enumerate(other)) | dict(zip(places, sources, strict=True))
    assert all(a < b for a, b in pairwise(sources))
    position = data.draw(st.integers(0, 61))

    def look(offset: int) -> int | None:
        return next((lies[place] for place in sorted(lies) if place >= offset), None)

    found = translated(position, low, end, look)
    assert low <= found <= end
    assert {lies[place] for place in places if place >= found} == {
        each for each in sources if each >= position
    }


def test_a_fence_changes_nothing_but_whose_it_is() -> None:
    fence = fence_manifest(MANIFEST, 0)
    assert fence == MANIFEST._replace(
        txn_seq=61, owner_epoch=3, fired=0, digest=fence.digest, read_lease=False
    )


def test_a_replay_goes_over_from_the_one_side_to_the_other() -> None:
    fence = fence_manifest(MANIFEST, 0)
    active = activation_manifest(fence, 3)
    assert (active.position, active.pending, active.watermark_ms) == (3, 1, 900)
    store = ScheduleStore(MemoryMap())
    replay = Replay(store)
    rows = [(b"shop/order", ROW)]
    rows += [(keys.manifest_key(m.txn_seq), encode_manifest(m)) for m in (MANIFEST, fence, active)]
    replay.apply(rows, range(len(rows)), 0)
    replay.check()
    assert replay.manifest == active


def test_sides_are_compared_without_their_offsets_and_as_of_the_mark() -> None:
    theirs, mine = Digests(), Digests()
    rows = [(b"shop/order", ROW), (b"shop/a", b"\x01\x02x"), (b"shop/b", b"\x01\x02x")]
    theirs.take([*rows, (b"shop/moved", b"\x01\x02x"), (keys.IDENTITY_KEY, encode_identity(A))])
    mine.take(carried_rows(rows, "cluster-b").rows)
    moved = frozenset({b"shop/moved"})
    assert compared(theirs, mine, moved) == (3, [], 1)
    mine.take([(b"shop/a", None), (b"shop/b", b"\x01\x02y"), (b"shop/c", b"\x01\x02x")])
    assert compared(theirs, mine, moved).different == [
        RowDifference("missing", b"shop/a"),
        RowDifference("other", b"shop/b"),
        RowDifference("surplus", b"shop/c"),
    ]


def test_what_lies_in_two_partitions_of_a_side_is_doubled() -> None:
    groups = KeyGroups(2)
    tenant = "shop"
    group = groups.of(tenant)
    here = lies_key(group), encode_group(GroupRow(HERE, 2, NOWHERE, 17))

    def doubled(*sides: list[tuple[bytes, bytes | None]]) -> list[RowDifference]:
        owners = Owners(2)
        for rows in sides:
            held = Digests()
            held.take(rows)
            owners.take(held)
        return owners.doubled()

    waits = b"shop/a", ROW
    assert doubled([waits], [here, waits]) == [RowDifference("doubled", b"shop/a")]
    assert doubled([waits, (b"shop/a", None)], [here, waits]) == []
    assert doubled([here], [here]) == [RowDifference("doubled", b"key group %d" % group)]
    assert doubled([here, (here[0], None)], [here]) == []
    # A spread tenant has several homes, and its group has never moved.
    assert doubled([waits], [waits]) == []
