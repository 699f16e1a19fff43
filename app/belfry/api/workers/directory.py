"""Who holds which partition, as HTTP needs to know: a port that the worker implements."""

from __future__ import annotations

from typing import Protocol


class Directory(Protocol):
    """The workers of the group; every method is quick and may be called from any thread."""

    mine: str

    def holder(self, partition: int) -> str | None:
        """Address of the worker that holds a partition, as far as the group says."""

    def standbys(self, partition: int) -> list[str]:
        """Addresses of those who take it over, ahead of the group, should the holder be silent."""
