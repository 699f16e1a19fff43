"""The ends of a transaction other than a commit.

    raised      certain                                next
    Aborted     nothing of it is visible               the same step once more
    Unknown     nothing: it may be committed or not    the partition is taken over anew, fence first
    Fenced      it is not committed                    the owner stops

`TopicGone` and `Misplaced` are reasons within a step, and end as Aborted. Both writers of
transactions raise these exceptions, so the loop of a partition need not know which writer it has.
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

    `blocked`: the first error was a missing right to write to a topic. If no tenant can be held for
    that, the next term pauses first.
    """

    def __init__(self, reason: str, *, blocked: bool = False) -> None:
        super().__init__(reason)
        self.blocked = blocked


class Fenced(Exception):
    """Another owner has taken the partition over."""


class TopicGone(Exception):
    """An output topic disappeared while a step wrote to it: the step is rolled back."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"{topic} is not there any more")
        self.topic = topic


class Misplaced(Exception):
    """Rows that were signed for an offset do not lie there: the step is rolled back."""


class Stopped(Exception):
    """The worker was asked to stop amid a take-over."""
