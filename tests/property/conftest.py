"""Time for the properties; `tests/plugins/examples.py` says how many examples they draw."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
# They run at the lowest priority in `make test`, beside tests that start brokers.
TIMEOUT_S: Final = 1_800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time, unless they say how much they need."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
