"""No record is appended before its due instant, to the millisecond, by the broker's own clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

EVENTS = 2_000
TENANTS = ("a", "b", "c", "d")


def test_no_record_is_early(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> None:
    chance = random.Random(1)
    with Site(kafka, unique("early"), tmp_path) as site:
        site.fired_topics(TENANTS)
        site.worker().start().wait_ready()
        due: dict[bytes, int] = {}
        first_ms = now_ms() + 1_500
        for number in range(EVENTS):
            tenant = chance.choice(TENANTS)
            due_ms = first_ms + chance.randrange(3_000)
            due[b"%d" % number] = due_ms
            value = request(tenant, f"s{number}", at=due_ms, payload=b"%d" % number)
            site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
        site.producer.flush()
        fired = [record for tenant in TENANTS for record in site.wait_fired(tenant, 1)]
        while len(fired) < EVENTS:
            assert now_ms() < first_ms + 60_000, f"{len(fired)} of {EVENTS} fired"
            fired = site.fired(*TENANTS)
        assert len(fired) == len({record.value for record in fired}) == EVENTS
        late_ms = [record.timestamp_ms - due[record.value or b""] for record in fired]
        assert min(late_ms) >= 0
        assert median(late_ms) < 500
