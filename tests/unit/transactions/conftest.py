"""The writer's scripted brokers answer at once, so its patience need not be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.jumping_loop import JumpingLoop


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A clock that jumps for the files where nobody answers but the script."""
    scripted = item.path.name == "test_writer.py"
    return {"jumping": JumpingLoop} if scripted else {"usual": asyncio.new_event_loop}
