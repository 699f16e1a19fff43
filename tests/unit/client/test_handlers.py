"""One event goes to one handler, the one whose pattern says most."""

from __future__ import annotations

from functools import partial

import pytest

from belfry.client import FiredRecord, Handlers


def _say(pattern: str, event: FiredRecord) -> str:
    return pattern


@pytest.fixture
def handlers() -> Handlers:
    made = Handlers()
    for pattern in ("order.expired", "order.*", "order.paid.*", "*"):
        made.add(pattern, partial(_say, pattern))
    return made


@pytest.mark.parametrize(
    ("event_type", "pattern"),
    [
        ("order.expired", "order.expired"),
        ("order.expired.late", "order.*"),
        ("order.paid.late", "order.paid.*"),
        ("order.", "order.*"),
        ("order", "*"),
        ("price", "*"),
        (None, "*"),
    ],
)
def test_the_longest_pattern_wins(handlers: Handlers, event_type: str | None, pattern: str) -> None:
    found = handlers.find(event_type)
    assert found is not None
    assert found(FiredRecord("t", 0, 0, None, None, None, [])) == pattern


def test_without_a_pattern_for_all_some_have_no_handler() -> None:
    handlers = Handlers()
    handlers.add("order.*", print)
    assert handlers.find("price") is None
    assert handlers.find(None) is None


@pytest.mark.parametrize("pattern", ["", "*.expired", "order.*.late", "**"])
def test_a_star_stands_at_the_end(pattern: str) -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        Handlers().add(pattern, print)


@pytest.mark.parametrize("pattern", ["order.expired", "order.*", "*"])
def test_a_pattern_has_one_handler(handlers: Handlers, pattern: str) -> None:
    with pytest.raises(ValueError, match="has a handler already"):
        handlers.on(pattern)(print)
