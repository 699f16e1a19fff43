"""The memory of `belfry verify` in a file does what the one of dictionaries does, and lasts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belfry.cli.failures import CommandError
from belfry.cli.verified_topics import VerifiedTopics
from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_outputs import OutputFeed
from belfry.cli.verify_state import REPEATED_MS, StateFile
from belfry.tenants.policy import TenantPolicy
from belfry.verification.findings import Breach, Spot
from belfry.verification.memory import Memory, Remembered, Stands, ToldFire
from belfry.verification.rows import MANIFEST_KEY, Sealed
from belfry.verification.standing import Standing
from tests.unit.engine.driver import T0
from tests.unit.verification.planted import PLANTED, Planted, fire_nothing
from tests.unit.verification.test_jobs import backfill
from tests.unit.verification.trace import MemoryInProcess, Verification, varied, verified

WORLD = "belfry.changelog with the id x"


@pytest.mark.parametrize("planted", [None, *PLANTED[::3]])
def test_it_finds_what_the_other_one_finds(planted: Planted | None) -> None:
    trace = varied()
    if planted is not None:
        planted.plant(trace)
    one, other = verified(trace), verified(trace, memory=MemoryOnDisk(StateFile(None, WORLD)))
    assert one.findings == other.findings
    assert one.counts == other.counts


def test_a_pass_that_was_saved_is_there_for_the_next_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "state.db", varied()
    file = StateFile(path, WORLD)
    made = Verification(memory=MemoryOnDisk(file))
    made.round(trace)
    file.put_standing(3, made.standing)
    file.put_position("belfry.lifecycle", 1, 77)
    file.raise_floor("belfry.fired.demo", 5)
    file.raise_floor("belfry.fired.demo", 3)
    file.save()
    file.put_position("belfry.lifecycle", 1, 99)
    file.close()

    file = StateFile(path, WORLD)
    assert file.standing(3) == made.standing
    assert file.standing(4) == Standing()
    assert file.positions("belfry.lifecycle") == {1: 77}
    assert file.floors() == {"belfry.fired.demo": 5}
    memory = MemoryOnDisk(file)
    later = Verification(memory=memory, counts=made.counts, standing=file.standing(3))
    later.seen = made.seen
    later.outputs.round = made.outputs.round
    later.round(trace)
    assert later.findings == []
    assert later.counts.fires == len(trace.fired)
    file.close()


def test_a_run_that_begins_amid_a_job_knows_where_that_was() -> None:
    file, trace = StateFile(None, WORLD), backfill("demo")
    memory = MemoryOnDisk(file)
    whole = trace.changelog
    ends = [at + 1 for at, each in enumerate(whole) if each.key.startswith(MANIFEST_KEY)]
    seen = 0, 0
    # All events are there before: which of them are a step's, the row of the job tells.
    for end in ends[2:4] + ends[-1:]:
        made = Verification(memory=memory, standing=file.standing(0))
        made.seen, trace.changelog = seen, whole[:end]
        made.outputs.end = lambda *_: None  # type: ignore[method-assign]
        made.round(trace)
        assert made.findings == []
        assert made.counts.digests == made.counts.checked == made.counts.transactions > 0
        file.put_standing(0, made.standing)
        assert file.standing(0) == made.standing
        seen = made.seen
    assert file.standing(0).jobs == {}


def test_a_file_of_another_belfry_is_refused(tmp_path: Path) -> None:
    StateFile(tmp_path / "state.db", WORLD).close()
    with pytest.raises(CommandError, match="Name another file"):
        StateFile(tmp_path / "state.db", "belfry.changelog with the id y")
    (tmp_path / "text").write_text("no database, but text " * 100)
    with pytest.raises(CommandError, match="cannot be used"):
        StateFile(tmp_path / "text", WORLD)


@pytest.mark.parametrize("make", [MemoryInProcess, lambda: MemoryOnDisk(StateFile(None, WORLD))])
def test_numbers_of_any_size_come_back(make: Callable[[], Memory]) -> None:
    memory = make()
    known = Remembered(Stands.WAITS, 0, -1, 2**63 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1, 7)
    memory.put(1, 2**63 - 1, known)
    assert memory.schedule(1, 2**63 - 1) == known
    assert memory.schedules(2**63 - 1) == [known]
    memory.put(1, 2**63 - 1, None)
    assert memory.schedule(1, 2**63 - 1) is None


def test_what_is_settled_is_forgotten_and_the_rest_is_not() -> None:
    memory = MemoryOnDisk(StateFile(None, WORLD))
    made, trace = Verification(memory=memory), varied()
    made.round(trace)
    told = ToldFire(bytes(16), b"s", Spot("belfry.lifecycle", 0, 10**6), T0)
    memory.add_told(told, 1)
    memory.forget_before(T0 * 2)
    assert memory.fire(trace.fired[0].identity) is None
    assert memory.told_without_fire(9) == [told]
    # The schedules that wait are those that the manifest counts.
    sealed = made.standing.sealed
    assert isinstance(sealed, Sealed)
    assert made.standing.waiting == sealed.pending


def test_what_came_in_the_last_round_of_a_run_is_decided_of_by_a_later_run() -> None:
    """Each run makes two rounds at most, and what nobody asked for comes in the second one."""
    memory, trace = MemoryOnDisk(StateFile(None, WORLD)), varied()
    made = Verification(memory=memory)
    made.round(trace)
    fire_nothing(trace)
    made.round(trace)
    assert made.findings == []
    later = Verification(memory=memory, standing=made.standing)
    later.seen, later.outputs.round = made.seen, memory.last_round()
    later.round(trace)
    assert [each.breach for each in later.findings] == [Breach.UNASKED]
    assert memory.last_round() == 1


def test_topics_whose_events_might_come_twice_are_remembered_for_a_week(tmp_path: Path) -> None:
    """A policy may promise more before a pass has read what a roll-back left."""
    file = StateFile(tmp_path / "state.db", WORLD)
    file.now_ms = T0
    assert file.repeating(["loose", "firm"]) == {"loose", "firm"}
    file.save()
    file.close()
    file = StateFile(tmp_path / "state.db", WORLD)
    file.now_ms = T0 + 1
    assert file.repeating(["loose"]) == {"loose", "firm"}
    file.now_ms = T0 + REPEATED_MS + 1
    assert file.repeating([]) == {"loose"}


def test_what_is_read_covers_topics_whose_events_might_come_twice_until_lately() -> None:
    """The shared topic does not become one of them by a tenant that comes to share it."""
    topics, file = VerifiedTopics("belfry.".__add__, ()), StateFile(None, WORLD)
    nobody: Any = None
    feed = OutputFeed(nobody, file, topics, nobody, nobody)
    topics.follow({"t": TenantPolicy("t", guarantee="AT_LEAST_ONCE")})
    assert feed._coverage([]).may_repeat("belfry.fired.t")
    topics.follow({"t": TenantPolicy("t", output="SHARED")})
    coverage = feed._coverage([])
    assert coverage.may_repeat("belfry.fired.t")
    assert not coverage.may_repeat("belfry.fired")
    assert not coverage.may_repeat("belfry.fired.u")
