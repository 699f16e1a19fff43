"""Faults of who reads and of what is read: hosts, clients, spreads, transactions that hang."""

from __future__ import annotations

from tests.simulation.world import World


def read_back(world: World) -> None:
    """A client reads a schedule over HTTP."""
    assert world.reading is not None
    world.reading.begin()


def call(world: World) -> None:
    """A client writes over HTTP."""
    assert world.calling is not None
    world.calling.begin()


def respread(world: World) -> None:
    """A tenant lives in more or fewer shards from now on."""
    assert world.respreading is not None
    world.respreading.change()


def hang(world: World) -> None:
    """A stranger's transaction hangs in a partition that belfry reads."""
    assert world.hanging is not None
    world.hanging.strange()


def lose_marker(world: World) -> None:
    """Of the next owner that is fenced amid a step, the marker never comes in its changelog."""
    assert world.hanging is not None
    world.hanging.armed += 1


def hang_for_others(world: World) -> None:
    """A stranger's transaction hangs where belfry writes for others, perhaps for a while."""
    assert world.hanging is not None
    world.hanging.for_others()


def lose_marker_for_others(world: World) -> None:
    """Of the next owner that is fenced amid a step, a marker never comes where others read."""
    assert world.hanging is not None
    world.hanging.armed_for_others += 1


def slow_marker(world: World) -> None:
    """Of a transaction that is decided soon, one marker comes seconds or minutes late."""
    assert world.late_markers is not None
    world.late_markers.arm()


def collide(world: World) -> None:
    """Two tenants whose names collide ask for the first time, at one instant."""
    assert world.colliding is not None
    world.colliding.begin()


def fail_host(world: World) -> None:
    """A host of webhooks refuses, says nothing, or takes what comes and is not heard."""
    assert world.hooks is not None, "this world has no webhooks"
    world.hooks.strike()
