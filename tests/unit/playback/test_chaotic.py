"""A chaotic load: requests of all kinds, steps of all sizes, rolled back, owners that come and go.

`REPLAYED=100000 pytest -s tests/unit/playback/test_chaotic.py` plays so many, and says how long.
"""

from __future__ import annotations

import os
import time
from random import Random
from typing import Any, Final

from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, play

REQUESTS: Final = int(os.environ.get("REPLAYED", "1500"))
SEED: Final = 20261126
TENANTS: Final = ("a", "b", "c", "d")
# Sizes to which the pace of a partition comes.
SIZES: Final = (10_000, 5_000, 500, 100, 50)


def ask(trail: Leaving, random: Random, number: int, now_ms: int) -> None:
    """One request: half are one-shots, the others recur, change, end or follow one."""
    tenant, name = random.choice(TENANTS), f"s{random.randrange(max(10, number))}"
    soon = now_ms + random.randrange(-50, 3_000)
    more: dict[str, Any] = {"request_id": f"r{number}"} if number % 5 == 0 else {}
    match random.randrange(12):
        case 0:
            more |= {"action": "CANCEL"}
        case 1:
            more |= {"action": random.choice(("PAUSE", "RESUME"))}
        case 2:
            more |= {"action": "TRIGGER"}
        case 3:
            name = f"rule{number % 100}"
            more |= {"kind": "EVERY", "interval_ms": random.randrange(200, 2_000), "max_fires": 9}
        case 4:
            name = f"cron{number % 50}"
            more |= {"kind": "CRON", "cron": "*/2 * * * * *", "max_fires": 4}
        case 5:
            more |= {"at": soon, "group": f"g{number % 3}", "serial": True, "ack_timeout_ms": 300}
        case 6:
            more |= {"at": now_ms + HOUR, "jitter_ms": 500}
        case _:
            more |= {"at": soon, "payload": b"x" * random.randrange(100)}
    trail.ask(now_ms, tenant=tenant, schedule_id=name, **more)


def run(trail: Leaving, random: Random) -> None:
    """Let time pass, request by request."""
    now_ms, number = T0, 0
    while number < REQUESTS:
        now_ms += random.randrange(1, 200)
        for _ in range(random.randrange(1, 60)):
            ask(trail, random, number, now_ms)
            number += 1
        if random.random() < 0.01:
            rate = random.choice((None, 50.0, 500.0))
            trail.set(now_ms, tenant="b", max_fires_per_second=rate, lifecycle="ALL")
        if random.random() < 0.03:
            now_ms += random.randrange(1, 5_000)
            trail.own(now_ms, cold=random.random() < 0.5)
        size = random.choice(SIZES)
        if random.random() < 0.05:
            trail.step(now_ms, size, commit=False)
            now_ms += 10
        trail.step(now_ms, size, take=random.choice((None, None, 10)))
    while trail.engine.position < len(trail.source):
        trail.step(now_ms)
    trail.run(now_ms + 10_000)


def test_a_chaotic_run_comes_out_again() -> None:
    trail, random = Leaving(), Random(SEED)
    run(trail, random)
    began = time.process_time()
    outcome = play(trail)
    took_s, counts = time.process_time() - began, outcome.player.counts
    print(f"{counts}, {took_s:.1f} s of CPU")  # noqa: T201
    assert outcome.differs is None, outcome.differs
    assert counts.requests == len(trail.source) >= REQUESTS
    assert counts.fires == outcome.events == len(trail.events)
