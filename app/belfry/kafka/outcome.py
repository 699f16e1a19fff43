"""How a transaction can end besides well.

    raised      what is certain                        what follows
    Aborted     nothing of it is visible               the same step once more
    Unknown     nothing: it may be committed or not    the partition is taken over anew, fence first
    Fenced      it is not committed                    the owner stops

`TopicGone` and `Misplaced` are reasons within a step, and come out as Aborted. Both writers of
transactions raise these, so the loop of a partition does not know which one it has.
"""

from __future__ import annotations


class Aborted(Exception):
    """Rolled back for certain: nothing of it is visible; the step may be done again.

    `topics` are the output topics that refused a record.  `blocked`: some topic may not be written
    to, and Kafka does not say which one.
    """

    def __init__(
        self, reason: str, topics: dict[str, str] | None = None, *, blocked: bool = False
    ) -> None:
        super().__init__(reason)
        self.topics = topics or {}
        self.blocked = blocked


class Unknown(Exception):
    """The result is unknown: close the producer, forget the partition's memory, start over.

    `blocked`: it began with a topic that may not be written to, so a step that has none is to wait.
    """

    def __init__(self, reason: str, *, blocked: bool = False) -> None:
        super().__init__(reason)
        self.blocked = blocked


class Fenced(Exception):
    """Another owner has taken the partition over."""


class TopicGone(Exception):
    """An output topic went away while a step wrote to it: the step is rolled back."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"{topic} is not there any more")
        self.topic = topic


class Misplaced(Exception):
    """Rows that were signed by their place did not come to lie there: the step is rolled back."""


class Stopped(Exception):
    """The worker was asked to stop amid a take-over."""
