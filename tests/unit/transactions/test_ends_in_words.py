"""What a transaction that could not go on tells its owner: what was asked for, and the error."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.kafka.outcome import Fenced, Unknown
from belfry.transactions import errors
from belfry.transactions.asking import Ended
from belfry.transactions.errors import Line, Meaning
from belfry.transactions.writer import TransactionWriter, WriterState
from tests.unit.transactions.conftest import SkippedTime
from tests.unit.transactions.scripted import LOST, Answer, Script, batches, opened, told

pytestmark = pytest.mark.usefixtures("skipped_time")

FENCED, BUSY, MOVED, ODD = 90, 51, 16, 999
ALWAYS = 9_999


async def ended(
    kind: str, answers: list[Answer], *, own_epochs: bool, commit: bool = True
) -> tuple[TransactionWriter, Ended]:
    """A writer, and how a step of it ends whose requests of this kind are answered like that."""
    script = Script(**{kind: answers})
    writer = TransactionWriter(script, "belfry.0", 10_000, own_epochs=own_epochs)
    try:
        await writer.begin()
        await writer.write(batches(writer))
        await writer.end(commit=commit)
    except Ended as error:
        return writer, error
    raise AssertionError("the step went well")


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize(
    ("kind", "commit", "during"),
    [("init", True, "fence"), ("end", True, "commit"), ("end", False, "roll-back")],
)
async def test_what_a_coordinator_refused_is_told(
    kind: str, during: str, commit: bool, own_epochs: bool
) -> None:
    for code in (FENCED, ODD):
        _, found = await ended(kind, [code], own_epochs=own_epochs, commit=commit)
        assert str(found) == f"{during}: {errors.sentence(code)}"
        assert found.topics == {}
    for code in (BUSY, MOVED):
        _, found = await ended(kind, [code] * ALWAYS, own_epochs=own_epochs, commit=commit)
        assert str(found) == f"{during}: not in time: {errors.sentence(code)}"
        assert found.meaning is Meaning.UNKNOWN
        assert found.topics == {}


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
async def test_what_a_leader_refused_is_told(own_epochs: bool) -> None:
    for code in (87, 48):
        _, found = await ended("produce", [code], own_epochs=own_epochs)
        assert str(found) == f"produce: {errors.sentence(code)}"
    for code in (20, BUSY, 5):
        _, found = await ended("produce", [code] * ALWAYS, own_epochs=own_epochs)
        assert str(found) == f"produce: not in time: {errors.sentence(code)}"
        assert found.meaning is Meaning.ABORT


async def test_who_may_not_be_added_is_told() -> None:
    for code in (87, FENCED):
        _, found = await ended("add", [code], own_epochs=False)
        assert str(found) == f"adding partitions: {errors.sentence(code)}"
    for answer, code in ((BUSY, BUSY), (LOST, errors.LOST)):
        _, found = await ended("add", [answer] * ALWAYS, own_epochs=False)
        assert str(found) == f"adding partitions: not in time: {errors.sentence(code)}"


@pytest.mark.parametrize(("kind", "most_s"), [("init", 30.0), ("produce", 8.0), ("end", 9.5)])
@pytest.mark.parametrize("code", [BUSY, MOVED])
async def test_each_part_of_a_step_has_its_time(
    skipped_time: SkippedTime, kind: str, most_s: float, code: int
) -> None:
    """A step's owner waits for so long, and no partition of its worker moves meanwhile."""
    before = skipped_time.now
    await ended(kind, [code] * ALWAYS, own_epochs=True)
    assert skipped_time.now - before == pytest.approx(most_s)


async def test_adding_has_the_time_of_writing(skipped_time: SkippedTime) -> None:
    before = skipped_time.now
    writer, found = await ended("add", [BUSY] * ALWAYS, own_epochs=False)
    assert skipped_time.now - before == pytest.approx(8.0)
    assert found.meaning is Meaning.UNKNOWN
    assert writer.state is WriterState.OVER


async def test_a_right_that_is_missing_is_told_apart() -> None:
    for code, blocked in ((errors.BLOCKED, True), (87, False)):
        script = Script(produce=[told({"bad": code})])
        writer = await opened(script, own_epochs=True)
        with pytest.raises(Ended) as raised:
            await writer.write(batches(writer, ("changelog", 0), ("bad", 0)))
        assert raised.value.blocked is blocked


@pytest.mark.parametrize("meaning", [each for each in Meaning if each is not Meaning.FENCED])
def test_an_owner_is_told_whether_it_was_fenced(meaning: Meaning) -> None:
    fenced = Ended(Line("NAME", Meaning.FENCED, "why"), during="commit")
    for first in ("", "before that, "):
        found: Any = fenced.as_outcome(first=first) if first else fenced.as_outcome()
        assert type(found) is Fenced
        assert str(found) == f"{first}commit: NAME: why"
    other = Ended(Line("NAME", meaning, "why"), during="commit")
    for blocked in (False, True):
        found = other.as_outcome(blocked=True, first="1, ") if blocked else other.as_outcome()
        assert type(found) is Unknown
        assert str(found) == ("1, " if blocked else "") + "commit: NAME: why"
        assert found.blocked is blocked
