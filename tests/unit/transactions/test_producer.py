"""What a step's owner is told of a roll-back that belfry's own writer carried out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.effects import Effects, Letter
from belfry.kafka.outcome import Aborted
from belfry.transactions import errors
from belfry.transactions.asking import Ended
from belfry.transactions.producer import DirectProducer
from belfry.transactions.writer import WriterState


@pytest.mark.parametrize(("code", "blocked"), [(errors.BLOCKED, True), (10, False)])
def test_a_right_that_is_missing_is_remembered_where_all_was_rolled_back(
    code: int, blocked: bool
) -> None:
    here: Any = SimpleNamespace(signer=None, _refused=lambda *_: {})
    writer: Any = SimpleNamespace(state=WriterState.READY)
    end = DirectProducer._roll_back(here, writer, Ended(errors.TABLE[code]), Effects())
    assert isinstance(end, Aborted)
    assert (end.topics, end.blocked) == ({}, blocked)


def test_the_topics_of_tenants_are_told_of_those_that_refused() -> None:
    """Events and dead letters; the others are belfry's, and nobody is held for them."""
    here: Any = SimpleNamespace(_non_transactional=SimpleNamespace(refused={}, start_over=list))
    fired: Any = [("f", b"k", None, b"v", [])]
    effects = Effects(fired=fired, letters=[Letter("l", b"k", b"v", [])])
    end = Ended(errors.TABLE[10], {"f": "1", "l": "2", "belfry.rejected": "3"})
    assert DirectProducer._refused(here, end, effects) == {"f": "1", "l": "2"}
