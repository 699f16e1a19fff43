"""Logs of steps that sent something on: manifests say so, and those of earlier releases do not."""

from __future__ import annotations

import pytest

from belfry.playback.logged import LoggedRow
from belfry.schedules.identity import Homes
from belfry.store.layout.manifests import decode_manifest, encode_manifest
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, is_manifest, play

PARTITIONS = 4
HOME = Homes(PARTITIONS).of
MINE = next(name for name in map("t{}".format, range(99)) if HOME(name) == 0)
STRAY = next(name for name in map("t{}".format, range(99)) if HOME(name) == 2)


def some_strays() -> Leaving:
    """A step with a stray, one without, and one with a stray alone."""
    trail = Leaving(PARTITIONS)
    for at, tenants in enumerate([(MINE, STRAY), (MINE,), (STRAY,)]):
        for tenant in tenants:
            trail.ask(T0 + at, tenant=tenant, schedule_id=f"s-{at}", at=T0 + HOUR)
        trail.step(T0 + at)
    return trail


def says(row: LoggedRow, *, sent_on: bool) -> LoggedRow:
    """The record of a manifest that says so, whatever it said."""
    assert row.row is not None
    manifest = decode_manifest(row.row)
    return row._replace(row=encode_manifest(manifest._replace(sent_on=sent_on)))


def test_manifests_say_which_steps_sent_something_on() -> None:
    trail = some_strays()
    manifests = [decode_manifest(each.row) for each in trail.log if is_manifest(each) and each.row]
    assert [each.sent_on for each in manifests] == [False, True, False, True]
    assert play(trail).differs is None


def test_a_log_of_a_release_that_did_not_say_so_can_be_played() -> None:
    trail = some_strays()
    log = [says(each, sent_on=False) if is_manifest(each) else each for each in trail.log]
    outcome = play(trail, log)
    assert outcome.differs is None, outcome.differs
    assert outcome.player.counts.steps == 4


@pytest.mark.parametrize("at", [0, 2])
def test_a_manifest_that_tells_of_what_was_never_sent_on_is_found(at: int) -> None:
    trail = some_strays()
    silent = [each for each in trail.log if is_manifest(each)][at]
    log = [says(each, sent_on=True) if each is silent else each for each in trail.log]
    found = play(trail, log).differs
    assert found is not None
    assert (found.what, found.name, found.transaction) == ("manifest", "sent_on", at + 1)
