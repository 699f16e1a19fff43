"""Targets over HTTP: posted by another thread or process, which answers in its own time."""

from __future__ import annotations

from belfry.delivery.work import Work


class Posted:
    """Leaves every attempt to the side that posts (`delivery/posting.py`)."""

    def carry(self, work: Work) -> None:
        """Nothing here: what talks to strangers talks to nobody else."""

    def forget(self) -> None:
        """Nothing is known."""
