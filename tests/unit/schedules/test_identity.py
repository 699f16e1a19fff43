"""Homes agree with Kafka's own partitioner; fire ids tell fires apart and nothing else."""

from __future__ import annotations

from itertools import product
from zlib import crc32

import pytest

from belfry.schedules.identity import (
    Homes,
    backfill_fire_id,
    etag_of,
    expected_from,
    expected_in,
    expected_of,
    extra_fire_id,
    fire_id,
    generation_at,
    murmur2,
    partition_of,
)


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        # From Kafka's UtilsTest.
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_murmur2_is_kafkas(text: str, signed: int) -> None:
    assert murmur2(text.encode()) == signed % 2**32


def test_a_partition_is_the_positive_hash_modulo_the_partitions() -> None:
    assert partition_of(b"21", 1_000) == (-973932308 & 0x7FFFFFFF) % 1_000
    assert {partition_of(b"%d" % n, 4) for n in range(100)} == {0, 1, 2, 3}


def test_the_home_of_a_tenant_is_the_partition_of_its_name() -> None:
    homes = Homes(12)
    assert homes.of("payments.eu") == partition_of(b"payments.eu", 12)
    assert homes.of("payments.eu", "order/1") == homes.of("payments.eu", "order/2")


def test_a_spread_tenant_lives_in_the_shards_of_its_ids() -> None:
    homes = Homes(12)
    for schedule_id in ("order/1", "é", "order/2"):
        shard = crc32(schedule_id.encode()) % 8
        expected = partition_of(b"demo/%d" % shard, 12)
        assert homes.of("demo", schedule_id, 8) == expected
    assert len({homes.of("demo", f"{n}", 8) for n in range(200)}) > 1


def test_all_homes_of_a_tenant_are_those_of_each_spread_it_has_had() -> None:
    homes = Homes(64)
    whole, four = homes.of("demo"), [partition_of(b"demo/%d" % n, 64) for n in range(4)]
    assert homes.all_of("demo", [1]) == [whole]
    assert homes.all_of("demo", [4]) == list(dict.fromkeys(four))
    assert homes.all_of("demo", [1, 4]) == list(dict.fromkeys([whole, *four]))
    assert homes.all_of("demo", [4, 1]) == list(dict.fromkeys([*four, whole]))
    assert homes.all_of("demo", []) == []


def test_a_request_asks_the_homes_of_each_spread_and_begins_at_the_last() -> None:
    homes = Homes(64)
    for schedule_id in ("a", "b", "order/1"):
        asked = homes.route("demo", schedule_id, (1, 4), 8)
        assert asked[-1] == homes.of("demo", schedule_id, 8)
        assert asked[0] == homes.of("demo")
        assert {*asked} == {homes.of("demo", schedule_id, spread) for spread in (1, 4, 8)}


def test_homes_do_not_depend_on_what_was_asked_before() -> None:
    names = [f"tenant-{n}" for n in range(50)]
    one, other = Homes(7), Homes(7)
    assert [one.of(name) for name in names] == [other.of(name) for name in names[::-1]][::-1]
    assert [one.of(name) for name in names] == [one.of(name) for name in names]


def test_lives_of_all_source_positions_differ() -> None:
    positions = list(product((0, 1, 4095), (0, 1, 2**48 - 1)))
    assert len({generation_at(*position) for position in positions}) == len(positions)


def test_a_fire_id_is_the_same_for_every_attempt() -> None:
    # Frozen: sinks of earlier releases upsert by it.
    assert fire_id(b"demo/a", 7, 1, 1_800_000_000_000) == b"c2f630dec17a94474839f3bc41aa376c"


def test_each_part_of_its_identity_makes_another_fire_id() -> None:
    parts = product((b"demo/a", b"demo/a1", b"demo/"), (0, 1), (1, 11), (0, 1_800_000_000_000))
    ids = [fire_id(*each) for each in parts]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in ids)


def test_a_triggered_fire_is_another_than_the_one_by_the_clock() -> None:
    ids = {fire_id(b"demo/a", 1, 1, 5), *(extra_fire_id(b"demo/a", 1, 1, n) for n in (5, 6))}
    assert len(ids) == 3
    # Frozen as well.
    assert extra_fire_id(b"demo/a", 7, 1, 5) == b"9728288cba9ca2cccfb4bdbe0716b31e"
    assert backfill_fire_id(b"demo/a", 7, (1, 5), -8) == b"dacac7ae34ababc3ce8f421e3727596a"


@pytest.mark.parametrize(
    ("etag", "expected"),
    [
        ("2", 2),
        ("7.2", 7 << 32 | 2),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("2147483647.2147483647", (2**31 - 1) << 32 | 2**31 - 1),
        ("2147483648.1", None),
        ("1.2147483648", None),
        ("1", 1),
        ("7.1", 7 << 32 | 1),
        ("0", None),
        ("0.2", None),
        ("7.0", None),
        ("7.", None),
        (".2", None),
        ("07.2", None),
        ("", None),
        ("a", None),
    ],
)
def test_a_version_as_text_names_what_is_expected(etag: str, expected: int | None) -> None:
    assert expected_from(etag) == expected
    if expected is not None:
        generation, version = expected_in(expected)
        assert etag_of(generation or None, version) == etag.rpartition(".")[2] or generation
        assert not generation or etag_of(generation, version) == etag


def test_a_version_is_told_with_its_generation_where_that_is_known() -> None:
    assert etag_of(7, 2) == "7.2"
    assert etag_of(None, 2) == "2"
    assert etag_of(7, None) is None
    assert etag_of(None, None) is None
    assert expected_of(7, 2) == 30_064_771_074
    assert expected_in(30_064_771_074) == (7, 2)
    assert expected_in((1 << 32) - 1) == (0, (1 << 32) - 1)
    assert expected_in(1 << 32) == (1, 0)
