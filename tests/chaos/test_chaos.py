"""Whatever happens to whomever: each event fires once, never early, and none is lost.

``make chaos SEEDS=10`` runs every fault of the table and every step by every signal, ten times in
different orders; ``FAULTS=S6``, a regular expression, those whose names it is found in.  There are
three brokers, with ``BROKERS=1`` a lone one.  ``make test`` and ``make chaos SEEDS=0`` run a slice
with a lone one: a few faults that tell most, one after the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.harness.load import Shape
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import Site
from tests.chaos.broker import Brokers
from tests.chaos.faults.disks import may_mount
from tests.chaos.faults.table import FAULTS, NEEDS_MOUNT, SLICE, STEP_FAULTS
from tests.chaos.judgement import judge
from tests.chaos.scene import Fault, Scene

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

SEEDS: Final = int(os.environ.get("SEEDS", "0"))
FIRST: Final = int(os.environ.get("FIRST_SEED", "1"))
ONLY: Final = os.environ.get("FAULTS", "")
CHOSEN: Final = range(FIRST, FIRST + SEEDS)
SHORT: Final = (1.0, 12.0)
LONG: Final = (1.0, 60.0)

# Short enough for a strike every few seconds, long enough for a machine that does other things too.
# What a step writes leaves before its commit, as that of a large one does: a strike tears it.
SESSION: Final = {
    "SESSION_TIMEOUT_MS": "3000",
    "HEARTBEAT_INTERVAL_MS": "500",
    "KAFKA__LINGER_MS": "5",
    "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]',
}

Naming = Callable[[str], str]


def site_on(brokers: Brokers, name: str, home: Path) -> Site:
    """A belfry whose topics have a copy on each node."""
    site = Site(brokers.servers, name, home, **SESSION)
    site.replicas = len(brokers.nodes)
    return site


def play(brokers: Brokers, site: Site, shape: Shape, faults: Mapping[str, Fault]) -> None:
    """All these faults in one scene, in an order that the seed chooses."""
    with Receiver() as receiver:
        scene = Scene(brokers, site, shape, receiver.url("/ok"))
        names = [name for name in faults if re.search(ONLY, name)]
        scene.chance.shuffle(names)
        scene.begin()
        for name in names:
            scene.strike(name, faults[name])
        judge(scene)


if not SEEDS:

    def test_a_slice_of_everything(lone_broker: Brokers, tmp_path: Path, unique: Naming) -> None:
        every = {**STEP_FAULTS, **FAULTS}
        with site_on(lone_broker, unique("slice"), tmp_path) as site:
            play(lone_broker, site, Shape(150, SHORT, 1), {name: every[name] for name in SLICE})


if SEEDS:

    @pytest.mark.parametrize("seed", CHOSEN)
    def test_every_step_by_every_signal(
        brokers: Brokers, tmp_path: Path, unique: Naming, seed: int
    ) -> None:
        with site_on(brokers, unique("steps"), tmp_path) as site:
            play(brokers, site, Shape(150, LONG, seed), STEP_FAULTS)

    @pytest.mark.parametrize("seed", CHOSEN)
    def test_every_other_fault(brokers: Brokers, tmp_path: Path, unique: Naming, seed: int) -> None:
        faults = dict(FAULTS)
        if not may_mount(tmp_path / "disk"):
            for name in NEEDS_MOUNT:
                del faults[name]
        with site_on(brokers, unique("faults"), tmp_path) as site:
            play(brokers, site, Shape(150, LONG, seed), faults)
