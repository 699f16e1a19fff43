"""What an open transaction hides in the changelog may have fired what the outputs show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli.verified_topics import VerifiedTopics
from belfry.cli.verify_cluster import ClusterVerifier
from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_state import StateFile
from belfry.cli.verify_topics import ReadableRange
from belfry.verification.findings import Breach, Spot
from belfry.verification.memory import FiredEntry, ToldFire
from belfry.verification.standing import APART_MS, Standing, seen_until
from tests.unit.engine.driver import HOUR, T0
from tests.unit.verification.trace import Recording, Verification


def test_what_may_be_explained_behind_an_open_transaction_is_left_for_later() -> None:
    """a's transaction is seen, that of b is hidden; somebody else's event is old enough."""
    made = Recording()
    made.apply()
    for name, at_ms in (("a", T0 + HOUR), ("b", T0 + 2 * HOUR)):
        made.ask(schedule_id=name, at=at_ms)
    made.step(T0)
    made.step(T0 + HOUR)
    seen = len(made.trace.changelog)
    made.step(T0 + 2 * HOUR)
    foreign = made.trace.fired[0]._replace(
        identity=bytes(16), spot=Spot("t", 0, 9), timestamp_ms=T0
    )
    trace, verification = made.trace, Verification()
    for fire in (*trace.fired, foreign):
        verification.outputs.fired(fire)
    verification.partition.begin(verification.coverage)
    verification.partition.feed(trace.changelog[:seen])
    assert verification.partition.go_on(final=True)
    outputs = verification.outputs
    outputs.end(0, outputs.round, seen_until([verification.standing]))
    assert [(each.breach, each.spot.offset) for each in outputs.findings] == [(Breach.UNASKED, 9)]
    assert verification.counts.hidden == 1
    verification.partition.feed(trace.changelog[seen:])
    assert verification.partition.go_on(final=True)
    outputs.end(0, outputs.round)
    assert len(verification.findings) == 1
    assert verification.counts.hidden == 0


def test_nothing_is_hidden_where_no_partition_hides() -> None:
    assert seen_until([]) is None
    standings = [Standing(last_ms=50_000), Standing(last_ms=40_000)]
    assert seen_until(standings) == 40_000 - APART_MS


@pytest.mark.parametrize("hidden", [True, False])
def test_a_pass_asks_which_partitions_hide_something(*, hidden: bool) -> None:
    reader: Any = SimpleNamespace(
        topics=lambda: {"belfry.changelog": [0, 1]}, hides=lambda *_: {1} if hidden else set()
    )
    file = StateFile(None, "a world")
    spot = Spot("belfry.fired.demo", 0, 3)
    MemoryOnDisk(file).add_fire(FiredEntry(bytes(16), b"a", T0, 0, spot, T0), 0)
    verifier = _verifier(reader, file)
    verifier._begin_partitions()
    verifier._decide(0, [])
    assert [each.breach for each in verifier.findings] == ([] if hidden else [Breach.UNASKED])


@pytest.mark.parametrize("hides", [True, False])
def test_a_partition_is_left_where_an_output_hides_what_fired(*, hides: bool) -> None:
    """Its verifier goes on only where what is missing is final."""
    reader: Any = SimpleNamespace(read=lambda *_: [])
    verifier = _verifier(reader, StateFile(None, "a world"))
    verifier._spans = {0: ReadableRange(0, 9)}
    feed: Any = SimpleNamespace(hides=lambda: hides)
    verifier._feed = feed
    waits: Any = SimpleNamespace(go_on=lambda *, final: final, fed_to=3)
    nobody: Any = None
    verifier._read_patiently(0, waits, nobody)
    assert verifier._held == ({0} if hides else set())


def test_an_output_hides_what_is_behind_a_transaction_that_stays_open() -> None:
    name, spans = "belfry.fired.demo", {0: ReadableRange(0, 5), 1: ReadableRange(0, 7)}
    reader: Any = SimpleNamespace(
        topics=lambda: {name: [0, 1]},
        spans=lambda _: {name: dict(spans)},
        read=lambda *_: [],
        hides=lambda *_: {1},
    )
    feed = _verifier(reader, StateFile(None, "a world"))._feed
    feed.begin()
    feed.read()
    assert feed.hides()
    spans[1] = ReadableRange(0, 8)
    feed.read()
    assert not feed.hides(), "its readers went on: that was another transaction"
    feed.begin()
    feed.read()
    assert feed.hides()


def test_word_of_a_fire_that_may_be_hidden_is_left_for_later() -> None:
    verification = Verification()
    verification.outputs.told(ToldFire(bytes(16), b"a", Spot("belfry.lifecycle", 0, 3), T0))
    outputs = verification.outputs
    outputs.end(0, outputs.round, T0 - 1)
    assert outputs.findings == []
    outputs.end(0, outputs.round)
    assert [each.breach for each in outputs.findings] == [Breach.UNTOLD_FIRE]


def _verifier(reader: Any, file: StateFile) -> ClusterVerifier:
    nobody: Any = None
    return ClusterVerifier(
        reader, file, VerifiedTopics("belfry.{}".format, ()), nobody, lambda _: nobody
    )
