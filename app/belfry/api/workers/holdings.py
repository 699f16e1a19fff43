"""What HTTP may read of the partitions: a port that the worker implements.

A schedule lives in one partition, its home, and each partition is held by one worker at a time.
Reads go to the holder, see what has been committed and nothing else, and never wait for the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from belfry.store.ordered_map import OrderedMap
from belfry.tenants.effective import Level, Tenant

T = TypeVar("T")


class NotHeld(Exception):
    """This worker does not hold the partition, or not any more."""

    def __init__(self, partition: int) -> None:
        super().__init__(f"partition {partition} is not held here")
        self.partition = partition


class Lease(Protocol):
    """One term of ownership, as far as reads are concerned."""

    settled: bool
    """False while a transaction may become visible whose rows are not in the store yet."""


class Holdings(Protocol):
    """The partitions of one worker; every method is quick and may be called from any thread."""

    partitions: int

    def home_of(self, tenant: str, schedule_id: str) -> int:
        """The partition in which a schedule lives."""

    def former_homes_of(self, tenant: str, schedule_id: str) -> list[int]:
        """Partitions in which it may live since the tenant was spread otherwise."""

    def homes_of(self, tenant: str) -> list[int]:
        """All partitions in which a tenant may have schedules, in their order."""

    def tenant(self, tenant: str) -> Tenant | None:
        """What this worker knows of a tenant; asking must not make one."""

    def level(self, tenant: str) -> Level:
        """Which lifecycle records a tenant gets, whether this worker has met it or not."""

    def held(self) -> list[int]:
        """The partitions that are held now."""

    def lease(self, partition: int) -> Lease:
        """The term of ownership in which a partition is held now; raises `NotHeld`."""

    def proven(self, partition: int, lease: Any, read_ms: float) -> bool:
        """Whether what was read in that term by an instant (monotonic ms) was the truth then.

        Where it is not known yet, the owner is asked for a commit that tells.  Raises `NotHeld`
        where the term is over.
        """

    def position(self, partition: int) -> int:
        """Requests before this offset show in the store; raises `NotHeld`."""

    def read(self, partition: int, look: Callable[[OrderedMap], T]) -> T:
        """What `look` finds in a partition's rows; raises `NotHeld`."""
