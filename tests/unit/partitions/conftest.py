"""What tests of steps that wait have in common."""

from __future__ import annotations

import pytest

from belfry.host import machine
from tests.unit.partitions.still_clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The machine's clock stands still."""
    found = Clock()
    monkeypatch.setattr(machine, "monotonic", found)
    return found
