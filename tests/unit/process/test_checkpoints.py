"""Checkpoints are kept for other workers where that was asked for, and signed in any case."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from belfry.balance.assignment_map import AssignedMember, AssignmentMap, MemberMetadata
from belfry.group.group import Group
from belfry.host.failpoints import Failpoints
from belfry.process.checkpoints import checkpoints_of, door_of
from belfry.recovery.checkpoint_making import CheckpointMaker
from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.settings import Settings
from belfry.store.checkpoint import IndexKeys
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics
from belfry.telemetry.metric_maker import MetricMaker
from belfry.wire.worker_keys import Purpose

SECRET = "the secret of all workers"
CLOCK: Any = SimpleNamespace(wall_ms=lambda: 0.0, monotonic_ms=lambda: 0.0)
TRUST: Any = SimpleNamespace(index_keys=IndexKeys())


def settings(home: Path, **given: Any) -> Settings:
    return Settings(data_dir=home, http_advertised_url="http://one:8700", **given)


def made(given: Settings, group: Group | None = None) -> CheckpointDependencies | None:
    metrics = CheckpointMetrics(MetricMaker(CollectorRegistry()))
    group = group or Group(MemberMetadata("one"))
    return checkpoints_of(given, CLOCK, metrics, TRUST, Failpoints(), group)


@pytest.mark.parametrize("store", [None, "file:///stored"])
@pytest.mark.parametrize("secret", [None, SECRET])
@pytest.mark.parametrize(
    ("peers", "asked_for"),
    [(None, "store"), ("with_store", "store"), ("always", "always"), ("never", "never")],
)
def test_who_asks_for_checkpoints_has_them_of_other_workers_too(
    tmp_path: Path, store: str | None, secret: str | None, peers: str | None, asked_for: str
) -> None:
    given = {} if peers is None else {"checkpoint_peers": peers}
    found = made(settings(tmp_path, checkpoint_store=store, http_worker_secret=secret, **given))
    wanted = asked_for == "always" or (asked_for == "store" and store is not None)
    for_peers = wanted and secret is not None
    assert (found is None) is (store is None and not for_peers)
    if found is not None:
        assert (found.store is not None) is (store is not None)
        assert (found.peers is not None, found.served is not None) == (for_peers, for_peers)
        assert (door_of(settings(tmp_path), CLOCK, CheckpointMaker(found)) is not None) is for_peers


def test_nothing_is_made_and_nothing_is_served_by_default(tmp_path: Path) -> None:
    assert made(settings(tmp_path, http_worker_secret=SECRET)) is None
    assert door_of(settings(tmp_path), CLOCK, None) is None


def test_indexes_of_workers_are_signed_whatever_the_changelog_is(tmp_path: Path) -> None:
    given = settings(tmp_path, checkpoint_peers="always", http_worker_secret=SECRET)
    assert given.changelog == "trusted"
    found = made(given)
    assert found is not None
    assert found.peers is not None
    keys = given.worker_keys(Purpose.CHECKPOINTS)
    assert found.peers.keys == IndexKeys(keys, signs=True, required=True)
    # The key is for this alone, and no older release has signed with the secret itself.
    assert len(keys) == 1
    assert not set(keys) & {
        key for purpose in Purpose if purpose is not Purpose.CHECKPOINTS
        for key in given.worker_keys(purpose)
    }  # fmt: skip


def test_those_are_asked_that_the_group_names(tmp_path: Path) -> None:
    group = Group(MemberMetadata("one", http="http://one:8700"))
    group.seated(
        AssignmentMap(
            (
                AssignedMember("one", http="http://one:8700", owns=(0,)),
                AssignedMember("two", http="http://127.0.0.1:1", stands_by=(0,)),
            )
        ).encode()
    )
    found = made(settings(tmp_path, checkpoint_peers="always", http_worker_secret=SECRET), group)
    assert found is not None
    assert found.peers is not None
    assert found.peers._holders(0) == ["http://127.0.0.1:1"]
