"""The output topics that exist, as this worker saw them last.

A look asks for all topics of the cluster at once, and finds the changes since the look before:

    12:00:00   fired.a 3 partitions    fired.b 3 partitions
    12:00:05   fired.a 3 partitions    fired.b 3 partitions, one of them without a leader    fired.c
               └ as before             └ in doubt: leaders move as brokers stop         new ┘
    12:00:06   fired.a 3 partitions    fired.b 3 partitions, the same without a leader
                                       └ lost: its tenants are held

A restart of a broker leaves a partition without a leader for a moment, and a held tenant waits for
a second or two. So a topic that could be written to counts as lost only after it has been in doubt
for a second, however many looks there are. Until then a step waits for the leader, as it does when
a leader moves.

New topics are noted in the directory, where they may decide which tenant has a name, and the
largest record of each is asked for. That happens before any request needs it, so that a request
that would not fit is refused and not accepted. The size is kept for tenants that are met later: a
step that meets one need not ask. The size may be old by then, so the thread that looks asks once
more soon after:

    09:00:00   fired.a is there     its largest record has 1 MB
    09:00:30   an admin alters it   belfry is not told
    11:00:00   a step meets `a`     the step goes by 1 MB, and does not wait
    11:00:04   the thread looks     its largest record has 5 MB

Topics that are to be made never count as gone: no other tenant may have their names meanwhile.

The view is replaced as a whole, so readers need no lock; looks run one after another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka.admin import AdminClient

from belfry.host import machine
from belfry.kafka.outcome import TopicGone
from belfry.outputs.holding import Holds
from belfry.outputs.letter_topics import LetterTopics
from belfry.outputs.topic_queue import ADMIN_S, TopicQueue, largest_records
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Tenant, TenantFacts

# Seconds for which a topic is without a leader before it is lost.
DOUBT_S: Final = 1.0


class TopicView:
    """Output topics by their numbers of partitions; for all threads.

    `leaderless` are topics that exist, and have a partition without a leader. `doubted` are those
    that may become so, with the instants at which they were first seen without a leader (monotonic
    seconds).
    """

    def __init__(
        self,
        admin: AdminClient,
        tenants: Tenants,
        holds: Holds,
        queue: TopicQueue,
        prefix: str,
        watcher: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """The view has topics that begin with `prefix`, and those that policies name."""
        self.admin = admin
        self.leaderless: set[str] = set()
        self.doubted: dict[str, float] = {}
        self.partitions: dict[str, int] = {}
        self._tenants = tenants
        self._holds = holds
        self._queue = queue
        self._prefix = prefix
        self._watcher = watcher
        self._noted: set[str] = set()
        # Bytes that a record may have, by topic, as brokers said last.
        self._largest: dict[str, int] = {}
        # Topics for which a step has used that size: the first is asked for again first.
        self._believed: deque[str] = deque()
        self.letters = LetterTopics(admin, tenants)
        self._lock = machine.Lock()

    def partitions_of(self, topic: str) -> int:
        """Number of partitions of an output topic; TopicGone if it was deleted meanwhile."""
        try:
            return self.partitions[topic]
        except KeyError:
            raise TopicGone(topic) from None

    def look(self, now_s: float) -> None:
        """Learn which tenants' topics exist, and hold those whose topic has lost a leader.

        `now_s` is monotonic.  Raises KafkaException if the brokers do not answer.
        """
        with self._lock:
            self._look(now_s)

    def _look(self, now_s: float) -> None:
        topics = self.admin.list_topics(timeout=ADMIN_S).topics
        self._watcher(topics)
        self.letters.look(topics, now_s)
        moved = self._tenants.moved_topics()
        mine = {
            name: topic
            for name, topic in topics.items()
            if (name.startswith(self._prefix) or name in moved) and topic.error is None
        }
        offline = {
            name
            for name, topic in mine.items()
            if any(partition.leader < 0 for partition in topic.partitions.values())
        }
        first_s = {name: self.doubted.get(name, now_s) for name in offline & self.partitions.keys()}
        self.doubted = {name: at_s for name, at_s in first_s.items() if now_s - at_s < DOUBT_S}
        self.leaderless = offline - self.doubted.keys()
        there = {
            name: len(topic.partitions)
            for name, topic in mine.items()
            if name not in self.leaderless
        }
        gone = {topic for topic in self._noted - mine.keys() if topic not in self._queue}
        self._tenants.note_topics(mine.keys() - self._noted, gone)
        self._noted = set(mine)
        self._largest = {name: most for name, most in self._largest.items() if name in there}
        lost = self.partitions.keys() - there.keys()
        new = there.keys() - self.partitions.keys()
        self.partitions = there
        # Before a request needs it: a request that would not fit is refused, not accepted.
        self.describe(list(new))
        self._holds.lose(lost, self.leaderless)

    def made(self, partitions: dict[str, int]) -> None:
        """Add topics that were made just now."""
        # Other threads iterate over the old view: it is replaced, never changed. A look that has
        # begun before does not know of these topics.
        with self._lock:
            self.partitions = {**self.partitions, **partitions}
            self._tenants.note_topics(partitions)
            self._noted = self._noted | partitions.keys()

    def not_made(self, topics: Iterable[str]) -> None:
        """Free the names of topics that could not be made, except those that exist."""
        with self._lock:
            failed = set(topics) - self.partitions.keys()
            self._tenants.note_topics((), failed)
            self._noted = self._noted - failed

    def describe(self, topics: Iterable[str]) -> Collection[str]:
        """Ask how large a record each topic accepts; returns the topics with an answer; blocks."""
        told = dict(largest_records(self.admin, topics))
        self._largest = {**self._largest, **told}
        self._note(told)
        return told.keys()

    def learn(self, topics: Iterable[str], anew: Collection[str]) -> None:
        """The same by earlier answers; asks only for topics that are new, and for those in `anew`.

        A step may meet a tenant as its key group arrives, and others wait for that step.
        """
        known = self._largest
        told = {each: known[each] for each in topics if each in known and each not in anew}
        self._note(told)
        self._believed.extend(told)
        self.describe([each for each in topics if each not in told])

    def ask_again(self) -> None:
        """Ask again for the topics for which a step has used an earlier answer; blocks.

        Topics without an answer now are asked for at the next look.
        """
        topics: set[str] = set()
        while self._believed:
            topics.add(self._believed.popleft())
        topics &= self.partitions.keys()
        self._believed.extend(topics.difference(self.describe(topics)))

    def doubt(self, topic: str) -> None:
        """Forget the largest record of a topic, which may have changed; it is asked for again."""
        self._largest = {name: most for name, most in self._largest.items() if name != topic}

    def _note(self, told: Mapping[str, int]) -> None:
        findings: list[tuple[Tenant, TenantFacts]] = []
        for topic, largest in told.items():
            if topic == self._tenants.names.shared:
                self._tenants.note_shared(largest)
                continue
            found = TenantFacts(max_record_bytes=largest)
            findings += [(tenant, found) for tenant in self._tenants.on(topic)]
        self._tenants.note(findings)
