"""How far a catch-up with a changelog has come, for logs, metrics and health."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ReplayProgress:
    """Offsets of a catch-up; written by one thread, shown by others."""

    begin: int = 0
    position: int = 0
    end: int = 0
    records: int = 0
    # Who keeps it from going on, in words; empty while nobody does.
    held_by: str = ""

    def started(self, position: int, end: int) -> None:
        """A catch-up from `position` to `end` begins; both are offsets of the changelog."""
        self.begin = self.position = position
        self.end = end

    @property
    def done(self) -> float:
        """Part of the way, 0 to 1."""
        way = self.end - self.begin
        return 1.0 if way <= 0 else min(1.0, max(0.0, (self.position - self.begin) / way))

    def sentence(self) -> str:
        """For people."""
        if self.held_by:
            return self.held_by
        return f"{self.done:.0%} of the changelog read, offset {self.position} of {self.end}"
