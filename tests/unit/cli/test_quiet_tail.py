"""`belfry events tail` in a quiet topic says what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belfry.cli import events


class Topic:
    """Events that come at these looks, of which each takes a second; None at the others."""

    def __init__(self, *looks: Any) -> None:
        self._looks = iter(looks)
        self.now_s = 0.0

    def next_within(self, _wait_s: float) -> Any:
        self.now_s += 1
        return next(self._looks)


@pytest.mark.parametrize(
    ("looks", "most", "notes"),
    [
        ((None, None, None, None, "late"), 1, 1),
        (("soon", None, None, None, None, "late"), 2, 0),
    ],
)
def test_who_waits_for_a_first_event_is_told_what_comes(
    monkeypatch: pytest.MonkeyPatch, looks: tuple[Any, ...], most: int, notes: int
) -> None:
    topic, told = Topic(*looks), []
    monkeypatch.setattr(events, "monotonic", lambda: topic.now_s)
    given: Any = topic
    came: Iterator[Any] = events._until(given, most, None, lambda: told.append("quiet"))
    assert list(came) == [each for each in looks if each is not None]
    assert len(told) == notes
