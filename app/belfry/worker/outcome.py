"""How a transaction can end besides well."""

from __future__ import annotations


class Aborted(Exception):
    """Rolled back for certain: nothing of it is visible; the step may be done again.

    `topics` are the output topics that refused a record.
    """

    def __init__(self, reason: str, topics: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.topics = topics or {}


class Unknown(Exception):
    """The result is unknown: close the producer, forget the partition's memory, start over.

    `barred`: it began with a topic that may not be written to, so whoever has none is to wait.
    """

    def __init__(self, reason: str, *, barred: bool = False) -> None:
        super().__init__(reason)
        self.barred = barred


class Fenced(Exception):
    """Another owner has taken the partition over."""
