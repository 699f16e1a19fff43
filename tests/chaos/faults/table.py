"""The table of faults: everything that may happen to a belfry, by name.

`SLICE` is what every run of the suite takes: a torn transaction, an owner that sleeps after it has
sent its commit and comes back, a network that moves nothing, a group that has no rest, and a topic
that goes away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.chaos.faults import (
    broker_disks,
    brokers,
    clocks,
    crowd,
    disks,
    group,
    network,
    outputs,
    state,
    strangers,
    workers,
)
from tests.chaos.scene import Fault
from tests.chaos.steps import step_faults

STEP_FAULTS: Final[Mapping[str, Fault]] = dict(step_faults())
FAULTS: Final[Mapping[str, Fault]] = {
    "broker restarted": brokers.restart,
    "broker killed": brokers.kill,
    "brokers restarted in turn": brokers.in_turn,
    "broker frozen": brokers.freeze,
    "broker's disk full": broker_disks.full,
    "state lost, damaged, stale, foreign": state.four_harms,
    "state older": state.older_copy,
    "state removed while open": state.removed,
    "state swapped while open": state.swapped,
    "disk full": disks.full,
    "disk low": disks.low,
    "disk refuses": disks.refuses,
    "clock forward": clocks.forward,
    "clock back": clocks.back,
    "clock a little ahead": clocks.a_little,
    "clock drifts": clocks.drifts,
    "clock hours off while requests come": clocks.hours_off,
    "network cut": network.cut,
    "network frozen": network.freeze,
    "network muted": network.mute,
    "rebalance storm": group.storm,
    "three workers, two killed at once": workers.two_end,
    "three workers, owners stopped in turn": workers.owners_in_turn,
    "output deleted": outputs.deleted,
    "output unauthorised": outputs.unauthorised,
    "stranger's transaction": strangers.transaction,
    "thundering minute": crowd.thundering_minute,
    "long outage": crowd.long_outage,
}
# Mounting a disk is not allowed everywhere; where it is not, the other full disk has to do.
NEEDS_MOUNT: Final = ("disk full", "disk low", "broker's disk full")
SLICE: Final = ("S2 kill", "S6 stop", "network frozen", "rebalance storm", "output deleted")
