"""Records of a group that were pending together come out in due order, with any jitter.

An occurrence of a recurring schedule is pending from the fire of the one before.
"""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.engine.driver import T0, Driver

SCHEDULES = st.fixed_dictionaries(
    {
        "kind": st.just("EVERY"),
        "interval_ms": st.sampled_from([10, 70, 500]),
        "jitter_ms": st.sampled_from([None, 5, 90, 2_000]),
        "misfire": st.sampled_from(["FIRE_ONCE", "FIRE_ONCE", "FIRE_ALL", "SKIP"]),
        "max_lateness_ms": st.sampled_from([0, 30, 300]),
        "max_fires": st.sampled_from([None, 3]),
    }
)
SINGLE = st.fixed_dictionaries({"at": st.integers(T0 + 1, T0 + 4_000)})
ONCE: dict[str, Any] = {
    "kind": "EVERY", "interval_ms": 10, "jitter_ms": 2_000, "misfire": "FIRE_ONCE",
    "max_lateness_ms": 0, "max_fires": None,
}  # fmt: skip


@given(
    st.lists(SCHEDULES | SINGLE, min_size=2, max_size=6),
    st.lists(st.sampled_from([1, 20, 150, 900, 2_500]), min_size=2, max_size=8),
    st.sampled_from([1, 3, 50]),
)
@example([ONCE, *({"at": T0 + at} for at in range(100, 4_000, 100))], [900, 900, 2_500], 50)
def test_what_is_pending_together_comes_out_in_due_order(
    several: list[dict[str, Any]], waits_ms: list[int], at_most: int
) -> None:
    driver = Driver()
    for number, asked in enumerate(several):
        driver.ask(schedule_id=f"s{number}", group="g", **asked)
    driver.step(T0)
    now_ms = T0
    # The latest due instant of the group since each schedule's next occurrence has been pending.
    latest_ms = {f"s{number}": 0 for number in range(len(several))}
    for wait_ms in waits_ms:
        now_ms += wait_ms
        for _ in range(4):
            step = driver.step(now_ms, at_most, take=0)
            for shot, late_ms in zip(step.shots, step.effects.lateness_ms, strict=True):
                due_ms = now_ms - late_ms
                assert late_ms >= 0
                assert due_ms >= latest_ms[shot.id], f"{shot.id} of {due_ms - T0} comes too late"
                latest_ms = {name: max(before, due_ms) for name, before in latest_ms.items()}
                latest_ms[shot.id] = 0
