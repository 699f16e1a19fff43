"""The rules of a kind of delivery target for its addresses.

A kind is asked when a request or a policy with a target comes in (`problems`, `place`, `allows`,
`refused`), and by the process that delivers: `share` to divide its work, and `allows` once more
before each attempt, for the policy may have changed.  All answers depend on the arguments alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from belfry.schedules.targets import HttpTarget

# Why a tenant's events must not go to a topic of Kafka, or None.
Judge = Callable[[str], str | None]


class TargetKind(ABC):
    """A kind of delivery target; it has no state."""

    name: ClassVar[str]

    @abstractmethod
    def knows(self, url: str) -> bool:
        """Whether an address is meant for this kind, by how it begins."""

    @abstractmethod
    def place(self, url: str) -> str:
        """Where events go, as `allowed_hosts` names it; empty if the address is not valid."""

    @abstractmethod
    def problems(self, target: HttpTarget) -> list[str]:
        """The faults of a target, as sentences; an empty list if it has none."""

    @abstractmethod
    def allows(self, place: str, entries: Sequence[str]) -> bool:
        """Whether `allowed_hosts`, with entries of every kind, let a place be used.

        `place` is the result of the method of that name; it is empty if the address is not valid.
        """

    @abstractmethod
    def share(self, url: str) -> str:
        """The place that deliveries share, such as a host: if one is slow, those to others go on.

        It is a host with its port, or a topic.
        """

    def refused(self, place: str, judge: Judge) -> str | None:  # noqa: ARG002  # of kinds that reach into Kafka
        """Why a place is kept from a tenant, whatever its policy allows, or None."""
        return None
