"""No accepted request and no policy that may be applied makes a step raise."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import assume, example, given
from hypothesis import strategies as st

from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEAR_MS, YEARS_100_MS
from belfry.schedules.rule import OVERLAPS
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import BOUNDS, TenantPolicy, problems
from tests.unit.engine.driver import HOUR, T0, Driver

I64: Final = (-(2**63), 2**63 - 1)
I31: Final = 2**31 - 1


def near(*edges: int) -> st.SearchStrategy[int | None]:
    """Numbers at these edges, and at those of 64 bits."""
    around = [edge + step for edge in edges for step in (-1, 0, 1)]
    return st.none() | st.sampled_from([*around, *I64, 0, 1, -1, I31, I31 + 1, 2**32])


INSTANTS = near(SECONDS_LIMIT, T0, T0 + 1, T0 + HOUR, T0 + YEARS_100_MS)
NUMBERS = near(1, YEAR_MS, YEARS_100_MS)
STANDING = st.fixed_dictionaries(
    {
        "next_at": INSTANTS.map(lambda found: found or T0),
        "occurrence": st.sampled_from([0, 1, I31 - 1, I31, I31 + 1, 2**32, 2**63 - 1, -1]),
        "version": st.sampled_from([0, 1, I31, I31 + 1, 2**32, 2**63 - 1, -1]),
        "paused": st.booleans(),
    }
)
REQUESTS = st.fixed_dictionaries(
    {
        "schedule_id": st.sampled_from(["a", "b", "é" * 127, "x" * 255]),
        "kind": st.sampled_from(["AT", "AFTER", "EVERY", "EVERY", "CRON"]),
        "action": st.sampled_from(
            ["UPSERT", "UPSERT", "UPSERT", "CREATE", "TRIGGER", "PAUSE", "RESUME"]
        ),
    },
    optional={
        "at": INSTANTS,
        "delay_ms": NUMBERS,
        "interval_ms": NUMBERS,
        "cron": st.sampled_from(["* * * * * *", "0 0 29 2 *", ",".join("1" * 90) + " * * * *"]),
        "except_cron": st.sampled_from(
            ["*/2 * * * *", "* * * * *", f"{','.join('1' * 90)} * * * *"]
        ),
        "timezone": st.sampled_from(["UTC", "Pacific/Apia", "America/Argentina/ComodRivadavia"]),
        "start_at": INSTANTS,
        "end_at": INSTANTS,
        "max_fires": near(1),
        "jitter_ms": NUMBERS,
        "max_lateness_ms": NUMBERS,
        "ack_timeout_ms": NUMBERS,
        "misfire": st.sampled_from(["FIRE_ONCE", "FIRE_ALL", "SKIP"]),
        "overlap": st.sampled_from(OVERLAPS[1:]),
        "serial": st.booleans(),
        "group": st.sampled_from([None, "g", "é" * 127, "g" * 255]),
        "event_type": st.sampled_from([None, "t" * 255]),
        "expected_version": near(1),
        "request_id": st.sampled_from([None, "r" * 255]),
        "headers": st.lists(
            st.just({"name": "n" * 1024, "value": b"v" * 2000}), max_size=300, min_size=0
        ),
        "standing": STANDING,
    },
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={name: near(least, most) for name, (least, most) in BOUNDS.items() if name != "spread"}
    | {
        name: st.sampled_from([0.0, 5e-324, 1e-6, 1.0, 1e9, 1e308])
        for name in ("max_requests_per_second", "max_fires_per_second")
    },
)
LAST: Final = {
    "kind": "EVERY", "interval_ms": 1, "schedule_id": "a", "action": "UPSERT",
    "standing": {"next_at": T0, "occurrence": I31 - 1, "version": I31, "paused": False},
}  # fmt: skip


@given(st.lists(REQUESTS, min_size=1, max_size=4), POLICIES)
@example([LAST, {**LAST, "standing": None, "jitter_ms": 1}], {})
def test_no_number_ends_a_partition(
    requests: list[dict[str, Any]], numbers: dict[str, float | None]
) -> None:
    given_numbers: dict[str, Any] = {
        name: value for name, value in numbers.items() if value is not None or _may_be_none(name)
    }
    policy = TenantPolicy("demo", **given_numbers)
    assume(not problems(policy))
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(policy))
    for asked in requests:
        driver.ask(**asked)
    for now_ms in (T0, T0 + 1, T0 + HOUR, T0 + YEAR_MS, T0 + YEARS_100_MS, T0 + 3 * YEARS_100_MS):
        for _ in range(3):
            driver.step(now_ms, at_most=20)
        driver.sweep(now_ms)
    driver.start(driver.rows)


def _may_be_none(name: str) -> bool:
    return getattr(TenantPolicy("demo"), name) is None
