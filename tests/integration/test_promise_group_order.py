"""Records of a group that are pending together come out in due order, ties as accepted."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

EVENTS = 600
GROUPS = ("even", "odd", "all at once")


def test_a_group_comes_out_in_due_order(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    chance = random.Random(3)
    with Site(kafka, unique("order"), tmp_path) as site:
        site.worker().start().wait_ready()
        first_ms = now_ms() + 3_000
        wanted: dict[str, list[tuple[int, int]]] = {group: [] for group in GROUPS}
        for number in range(EVENTS):
            group = GROUPS[number % len(GROUPS)]
            due_ms = first_ms + (0 if number % 3 == 2 else chance.randrange(0, 1_500, 5))
            wanted[group].append((due_ms, number))
            value = request(
                "t", f"s{number}", at=due_ms, group=group, payload=b"%d" % number,
                key=b"k%d" % chance.randrange(50),
            )  # fmt: skip
            site.producer.produce(site.topic("schedules"), value, key=b"t")
        site.producer.flush()
        assert now_ms() < first_ms, "too slow to say anything about order"
        fired = site.wait_fired("t", EVENTS)
        for group in GROUPS:
            members = {number for _, number in wanted[group]}
            records = [r for r in fired if int(r.value or b"-1") in members]
            assert len({record.partition for record in records}) == 1
            assert len({record.key for record in records}) > 10
            records.sort(key=lambda record: record.offset)
            numbers = [int(record.value or b"-1") for record in records]
            assert numbers == [number for _, number in sorted(wanted[group])]
