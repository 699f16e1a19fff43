"""Hypothesis profiles: a short one by itself, a thorough one for a quiet machine.

    pytest tests/property --hypothesis-profile=thorough --timeout 0

`deadline` is off: these tests judge answers, and the machine may be busy.

A decorator reads the profile when its module is imported, in whichever order that is.  So this is
loaded before all tests, by `addopts` in `pyproject.toml`.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

SLOW_IS_FINE: Final = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "short",
    deadline=None,
    max_examples=120,
    stateful_step_count=30,
    report_multiple_bugs=False,
    suppress_health_check=SLOW_IS_FINE,
)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=600,
    report_multiple_bugs=False,
    stateful_step_count=50,
    suppress_health_check=SLOW_IS_FINE,
)
if settings.get_current_profile_name() not in ("short", "thorough"):
    settings.load_profile("short")
