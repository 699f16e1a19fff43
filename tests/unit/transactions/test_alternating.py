"""Two ids in turn: both are fenced, one after the other writes, and a fence on one is the end."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.transactions import errors
from belfry.transactions.alternating import AlternatingWriter
from belfry.transactions.asking import Ended
from belfry.transactions.batches import StepBatches
from belfry.transactions.packing import NONE
from belfry.transactions.writer import TransactionWriter, WriterState
from tests.unit.transactions.scripted import Script

NAMES = ("belfry.0", "belfry.0.b")


async def opened(script: Script, used: int = 2) -> AlternatingWriter:
    writers = [TransactionWriter(script, name, 10_000, own_epochs=True) for name in NAMES]
    writer = AlternatingWriter(writers, used)
    await writer.begin()
    return writer


async def one_step(writer: AlternatingWriter, *, commit: bool = True, signed: bool = False) -> None:
    step = StepBatches(NONE, writer.limits, 1_700_000_000_000)
    step.add(("changelog", 0), b"k", b"v", [])
    await writer.write(writer.finish(step))
    await writer.end(commit=commit, signed=signed)


def produced_by(script: Script) -> list[Any]:
    """Ids of the transactions that something was produced in, in order."""
    return [each._fields[0] for each in script.sent if hasattr(each, "batches")]


@pytest.mark.parametrize("used", [1, 2])
async def test_a_take_over_fences_both(used: int) -> None:
    script = Script()
    await opened(script, used)
    assert script.kinds == ["init", "init"]
    assert [each._fields[0] for each in script.sent] == [*NAMES]


@pytest.mark.parametrize("commit", [True, False])
async def test_steps_take_turns_however_they_end(commit: bool) -> None:
    script = Script()
    writer = await opened(script)
    for _ in range(4):
        await one_step(writer, commit=commit)
    assert produced_by(script) == [*NAMES, *NAMES]


async def test_where_one_is_used_it_writes_all() -> None:
    script = Script()
    writer = await opened(script, used=1)
    for _ in range(3):
        await one_step(writer)
    assert produced_by(script) == [NAMES[0]] * 3


async def test_behind_signed_rows_the_same_id_goes_on() -> None:
    """They are signed for a place that a marker of another transaction would shift."""
    script = Script()
    writer = await opened(script)
    for _ in range(3):
        await one_step(writer, signed=True)
    assert produced_by(script) == [NAMES[0]] * 3


async def test_a_fence_on_either_is_the_end() -> None:
    fenced = next(code for code, line in errors.TABLE.items() if line.name == "PRODUCER_FENCED")
    script = Script(end=[0, fenced])
    writer = await opened(script)
    await one_step(writer)
    with pytest.raises(Ended):
        await one_step(writer)
    assert writer.state is WriterState.OVER


async def test_both_keep_to_the_limit_that_one_has_met() -> None:
    writer = await opened(Script())
    writer._turns[0].limits["fired"] = 1000
    writer._turns.rotate(-1)
    assert writer.limits["fired"] == 1000
