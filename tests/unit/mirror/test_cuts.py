"""What is carried of all partitions fits together: effects first, and causes first."""

from __future__ import annotations

from typing import Final

from belfry.mirror.cuts import NEVER_MS, Cut, Gate, Need, Together, highest_named
from belfry.mirror.waits import CIRCLE_MS, LOOK_MS
from belfry.store.layout.groups import (
    ASKED,
    HERE,
    LEAVING,
    NOWHERE,
    GroupRow,
    encode_group,
    home_key,
    lies_key,
)
from belfry.store.layout.manifests import Manifest
from belfry.wire.record import SentBy

NOW_MS: Final = 1_800_000_000_000
EVERYWHERE: Final = 1 << 40


def cut(number: int, *, position: int = 0, sent_on: bool = False, names: int = -1) -> Cut:
    """A transaction of one row and its manifest."""
    return Cut(2, 2 * number, number, position, sent_on, names, NOW_MS)


def look_on(together: Together, ms: int) -> None:
    """Let time pass in which lanes are looked at."""
    for _ in range(ms // LOOK_MS):
        together.waits.passes(together.waits._now_ms + LOOK_MS)


def numbers(cuts: list[Cut]) -> list[int]:
    return [each.number for each in cuts]


def test_a_transaction_that_neither_sent_nor_took_anything_waits_for_nothing() -> None:
    gate = Gate(Together(2), 0)
    for each in (1, 2, 3):
        gate.sealed(cut(each))
    assert numbers(gate.free(EVERYWHERE)) == [1, 2, 3]
    assert gate.held == 0


def test_what_a_transaction_sent_is_carried_before_it() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    gate.sealed(cut(1))
    gate.sealed(cut(2, sent_on=True))
    gate.sealed(cut(3))
    assert numbers(gate.free(EVERYWHERE)) == [1]
    asked = together.asks
    # What was carried by now tells nothing: the end behind it was not asked.
    together.carried(1, 9, 100, 0)
    assert gate.free(EVERYWHERE) == []
    together.tell({0: 5, 1: 101})
    assert (asked, together.asks) == (True, False)
    together.carried(0, 1, 5, 0)
    assert gate.free(EVERYWHERE) == []
    together.carried(1, 9, 101, 0)
    assert numbers(gate.free(EVERYWHERE)) == [2, 3]


def test_who_sent_what_a_transaction_took_in_is_carried_before_it() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    gate.request(Need(10, SentBy(1, 7), NOW_MS))
    gate.sealed(cut(1, position=10))
    gate.sealed(cut(2, position=11))
    assert numbers(gate.free(EVERYWHERE)) == [1]
    together.carried(1, 6, 0, 0)
    assert gate.free(EVERYWHERE) == []
    together.carried(1, 7, 0, 0)
    assert numbers(gate.free(EVERYWHERE)) == [2]


def test_a_transaction_waits_until_all_requests_that_it_took_in_were_read() -> None:
    gate = Gate(Together(1), 0)
    gate.sealed(cut(1, position=11))
    assert gate.free(10) == []
    assert numbers(gate.free(11)) == [1]


def test_what_a_partition_sent_to_itself_comes_in_its_order() -> None:
    gate = Gate(Together(1), 0)
    gate.request(Need(10, SentBy(0, 7), NOW_MS))
    gate.sealed(cut(8, position=11))
    assert numbers(gate.free(EVERYWHERE)) == [8]


def test_a_transaction_that_never_comes_is_waited_for_no_longer_than_a_minute() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    gate.request(Need(10, SentBy(1, 7), NOW_MS))
    gate.sealed(cut(1, position=11))
    together.carried(1, 3, 0, NOW_MS + NEVER_MS)
    assert gate.free(EVERYWHERE) == []
    together.carried(1, 3, 0, NOW_MS + NEVER_MS + 1)
    assert numbers(gate.free(EVERYWHERE)) == [1]


def test_a_partition_that_the_source_does_not_have_is_waited_for_no_longer_either() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    gate.request(Need(10, SentBy(5, 7), NOW_MS))
    gate.sealed(cut(1, position=11))
    together.looked_ms = NOW_MS + NEVER_MS
    assert gate.free(EVERYWHERE) == []
    together.looked_ms += 1
    assert numbers(gate.free(EVERYWHERE)) == [1]


def test_stretches_that_took_in_something_of_one_another_are_carried_all_the_same() -> None:
    together = Together(3)
    gates = [Gate(together, each) for each in range(3)]
    for each, gate in enumerate(gates):
        # Compaction has left one manifest of many, so each of them is ahead of the other two.
        for offset in (10, 12):
            gate.request(Need(offset, SentBy((each + 1) % 3, 500 + offset), NOW_MS))
        gate.sealed(cut(900, position=20))
        gate.sealed(cut(901, position=20))
    assert [gate.free(EVERYWHERE) for gate in gates] == [[], [], []]
    look_on(together, CIRCLE_MS - LOOK_MS)
    assert [gate.free(EVERYWHERE) for gate in gates] == [[], [], []]
    look_on(together, LOOK_MS)
    assert numbers(gates[2].free(EVERYWHERE)) == [900, 901]
    together.carried(2, 901, 0, 0)
    # The others wait for those that were carried, and for no circle.
    assert gates[0].free(EVERYWHERE) == []
    assert numbers(gates[1].free(EVERYWHERE)) == [900, 901]
    together.carried(1, 901, 0, 0)
    assert numbers(gates[0].free(EVERYWHERE)) == [900, 901]


def test_who_waits_for_what_is_about_to_be_carried_is_in_no_circle() -> None:
    together = Together(2)
    here, there = Gate(together, 0), Gate(together, 1)
    there.request(Need(10, SentBy(0, 1), NOW_MS))
    there.sealed(cut(5, position=11))
    here.request(Need(10, SentBy(1, 5), NOW_MS))
    here.sealed(cut(1))
    here.sealed(cut(2, position=11))
    assert there.free(EVERYWHERE) == []
    look_on(together, CIRCLE_MS)
    assert numbers(here.free(EVERYWHERE)) == [1]
    together.carried(0, 1, 0, 0)
    assert here.free(EVERYWHERE) == []
    assert numbers(there.free(EVERYWHERE)) == [5]
    together.carried(1, 5, 0, 0)
    assert numbers(here.free(EVERYWHERE)) == [2]


def test_a_time_in_which_nobody_looked_makes_no_circle() -> None:
    together = Together(2)
    gates = [Gate(together, each) for each in range(2)]
    for each, gate in enumerate(gates):
        gate.request(Need(10, SentBy(1 - each, 7), NOW_MS))
        gate.sealed(cut(9, position=11))
    together.waits.passes(NOW_MS)
    assert [gate.free(EVERYWHERE) for gate in gates] == [[], []]
    # The process was stopped for an hour.
    together.waits.passes(NOW_MS + 3_600_000)
    assert [gate.free(EVERYWHERE) for gate in gates] == [[], []]
    look_on(together, CIRCLE_MS)
    assert numbers(gates[0].free(EVERYWHERE)) == [9]


def test_a_wait_that_is_new_makes_no_circle_with_old_ones() -> None:
    together = Together(2)
    here, there = Gate(together, 0), Gate(together, 1)
    here.request(Need(10, SentBy(1, 7), NOW_MS))
    here.sealed(cut(9, position=11))
    assert here.free(EVERYWHERE) == []
    look_on(together, CIRCLE_MS)
    there.request(Need(10, SentBy(0, 9), NOW_MS))
    there.sealed(cut(7, position=11))
    assert there.free(EVERYWHERE) == here.free(EVERYWHERE) == []
    look_on(together, CIRCLE_MS)
    assert numbers(there.free(EVERYWHERE)) == [7]


def test_all_that_took_in_what_is_gone_is_carried_at_once() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    gate.request(Need(3, SentBy(1, 7), NOW_MS))
    for each in (1, 2, 3):
        gate.sealed(cut(each, position=100 * each))
    # The input was made anew, and what lies there by now was taken in later.
    gate.pass_missing(5, NOW_MS)
    assert gate.free(5) == []
    gate.pass_missing(5, NOW_MS + 1)
    assert numbers(gate.free(5)) == [1, 2, 3]
    gate.sealed(cut(4, position=5))
    assert gate.free(5) == []


def test_a_group_that_goes_to_a_partition_which_is_not_followed_waits_until_it_is() -> None:
    together = Together(2)
    gate = Gate(together, 0)
    rows = [(home_key(9), encode_group(GroupRow(ASKED, 0, 3, 17)))]
    sealed = Cut.of([*rows, (b"", b"")], 7, Manifest(1, 1, 0, 0, 0, 0, b""), NOW_MS)
    gate.sealed(sealed)
    assert (sealed.names, sealed.rows, sealed.offset) == (3, 2, 7)
    assert gate.free(EVERYWHERE) == []
    together.count = 4
    assert numbers(gate.free(EVERYWHERE)) == [1]


def test_what_was_sent_to_a_partition_that_is_added_is_carried_first_as_well() -> None:
    together = Together(1)
    gate = Gate(together, 0)
    gate.sealed(cut(1, sent_on=True, names=1))
    together.tell({0: 5})
    together.carried(0, 0, 5, 0)
    together.count = 2
    # Where the added one ends was not asked yet.
    assert gate.free(EVERYWHERE) == []
    together.tell({0: 5, 1: 9})
    assert gate.free(EVERYWHERE) == []
    together.carried(1, 0, 9, 0)
    assert numbers(gate.free(EVERYWHERE)) == [1]


def test_what_stands_for_several_transactions_may_have_sent_something() -> None:
    """Compaction removes manifests, and with them what they said of that."""
    manifest = Manifest(9, 1, 0, 0, 0, 0, b"")
    told = [Cut.of([(b"", b"")], 7, manifest, NOW_MS, after).sent_on for after in (0, 7, 8, 9, 20)]
    assert told == [False, True, False, False, False]


def test_rows_of_groups_name_partitions() -> None:
    rests = lies_key(9), encode_group(GroupRow(HERE, 2, NOWHERE, 17))
    leaves = lies_key(8), encode_group(GroupRow(LEAVING, 1, 5, 17))
    assert highest_named([(b"shop/a", b"row"), (home_key(7), None)]) == -1
    assert highest_named([rests]) == 2
    assert highest_named([leaves, rests]) == 5
