"""What a step's owner is told of a roll-back that belfry's own writer carried out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.effects import Effects
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
