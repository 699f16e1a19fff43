"""Hypothesis profiles: a short one by itself, a thorough one for a quiet machine.

    pytest tests/property --hypothesis-profile=thorough --timeout 0

`deadline` is off: these tests judge answers, and the machine may be busy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

HERE: Final = Path(__file__).parent
# They run at the lowest priority in `make test`, beside tests that start brokers.
TIMEOUT_S: Final = 1_800
SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time, unless they say how much they need."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
