"""Steps that no playback knows: what is said of them, and which transaction it was."""

from __future__ import annotations

import pytest

from belfry.playback.logged import LoggedRow, Unplayable
from belfry.store.layout.aside import ASIDE_PREFIX
from belfry.store.layout.groups import GROUP_PREFIX
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, play

TOLD = {
    ASIDE_PREFIX: "Transaction 2 set requests aside until the registry told of their schema. What"
    " the registry said when is in no log.",
    GROUP_PREFIX: "In transaction 2 a key group was on its way to another partition. How much of it"
    " a step moved is in no log: what lies before and behind the move can be played.",
}


@pytest.mark.parametrize("prefix", TOLD)
def test_a_step_that_depends_on_what_no_log_has_is_told(prefix: bytes) -> None:
    trail = Leaving()
    trail.ask(T0, schedule_id="a", at=T0 + HOUR)
    trail.step(T0 + 5)
    assert play(trail).differs is None
    at = next(n for n, each in enumerate(trail.log) if each.key == b"demo/a")
    row = LoggedRow(trail.log[at].offset, T0, prefix + b"1", b"1")
    with pytest.raises(Unplayable) as told:
        play(trail, [*trail.log[:at], row, *trail.log[at:]])
    assert str(told.value) == TOLD[prefix]
