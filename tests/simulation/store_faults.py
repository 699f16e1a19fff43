"""What befalls the stores beside Kafka: that of large payloads, and that of day files."""

from __future__ import annotations

from tests.simulation.world import World


def store_away(world: World) -> None:
    """The store of large payloads refuses everything for a while."""
    world.objects.be_away(world.random.choice((100.0, 1_500.0, 4_000.0)))


def store_slow(world: World) -> None:
    """The store of large payloads is slow for a while."""
    world.objects.be_slow(world.random.choice((300.0, 2_000.0, 5_000.0)))


def store_silent(world: World) -> None:
    """The store of large payloads answers nothing for a while."""
    world.objects.be_silent(world.random.choice((300.0, 2_000.0, 9_000.0)))


def days_away(world: World) -> None:
    """The store of day files refuses everything for a while."""
    world.days.be_away(world.random.choice((300.0, 1_500.0, 5_000.0)))


def days_slow(world: World) -> None:
    """The store of day files is slow for a while."""
    world.days.be_slow(world.random.choice((300.0, 2_000.0, 5_000.0)))


def days_silent(world: World) -> None:
    """The store of day files answers nothing for a while."""
    world.days.be_silent(world.random.choice((300.0, 2_000.0, 9_000.0)))


def days_damaged(world: World) -> None:
    """The store of day files gives other bytes for a while."""
    world.days.be_damaged(world.random.choice((300.0, 2_000.0, 5_000.0)))
