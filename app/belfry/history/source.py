"""The history as HTTP sees it: a book, and the partitions of the topic that it follows now."""

from __future__ import annotations

from typing import Protocol

from belfry.history.book import Book


class History(Protocol):
    """One worker's history; every property is quick and may be asked from any thread."""

    @property
    def book(self) -> Book | None:
        """What is kept; None before it is open."""

    @property
    def partitions(self) -> int:
        """Partitions of the lifecycle topic; 0 before they are known."""

    @property
    def followed(self) -> frozenset[int]:
        """Those that this worker answers for: it has read them as far as they reached."""

    def home_of(self, partition: int) -> int:
        """The home whose holder follows a partition of the topic."""

    def reach_ms(self, tenant: bytes) -> tuple[int, int]:
        """From when until when there may be records of a tenant, epoch ms."""
