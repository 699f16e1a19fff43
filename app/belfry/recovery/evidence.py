"""The evidence that a take-over compares: ids, anchors, and where the input begins and ends.

It is looked at twice: before the fence, so that a partition that has to stop fences nobody, and
after it, when nobody else writes any more.

    12:00:00  owner A commits transaction 900
    12:05:00  somebody deletes belfry.changelog and makes it anew
    12:05:05  A sees other ids, and stops
    12:06:00  B takes over: the changelog is empty, and the anchor tells of another topic
    12:06:00  Contradiction changelog_lost: nobody is fenced, nothing fires, somebody has to choose

Without the comparison B would take the empty topic for a new belfry, begin with nothing, and every
schedule would be gone without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.kafka.anchors import Anchors
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.log_bounds import LogBounds
from belfry.store.identity import (
    OTHER_CLUSTER,
    Contradiction,
    Identity,
    decode_identity,
    encode_identity,
    logged_contradiction,
    lost_changelog,
    lost_requests,
)
from belfry.store.layout import keys
from belfry.store.replay import Replay

# Records of the changelog that are read at once.
READ_RECORDS: Final = 20_000


class Recoveries:
    """How many recoveries the changelogs tell of, by partition; lives as long as the worker.

    Its row may lie anywhere in a changelog, which is read for it from its beginning.  A partition
    that waits for somebody's choice asks every few seconds, so each time only the rest is read.
    """

    def __init__(self) -> None:
        # By changelog and partition: up to which offset it was read, the generation, and
        # where the last manifest lies.
        self._known: dict[tuple[str, int], tuple[int, int, int]] = {}

    def generation(self, changelog_id: str, partition: int, changelog: ChangelogReader) -> int:
        """The generation of the newest identity in a changelog, 0 where it holds none.

        It reads from where the last call for this changelog ended, and blocks meanwhile. Where the
        log has been cut off since, it begins anew. Raises ConnectionError.
        """
        low, end = changelog.ends()
        known = self._known.get((changelog_id, partition))
        upto, generation, manifest_at = known or (low, 0, -1)
        if not low <= upto <= end:
            upto, generation, manifest_at = low, 0, -1
        changelog.seek(upto, manifest_at=manifest_at)
        for messages in changelog.read_until(end, READ_RECORDS):
            for key, row in changelog.changes(messages)[0]:
                if key == keys.IDENTITY_KEY and row is not None:
                    generation = decode_identity(row).generation
        at = changelog.sieve.manifest_at
        self._known[changelog_id, partition] = changelog.position, generation, at
        return generation


class Evidence:
    """Evidence about one partition, as one take-over asks for it.

    `here` are the ids as the cluster tells them now. `source` knows where the input begins and
    ends.
    """

    def __init__(
        self,
        partition: int,
        here: Identity,
        anchors: Anchors,
        source: LogBounds,
        recoveries: Recoveries | None = None,
    ) -> None:
        """`recoveries` remembers earlier reads of changelogs, for later take-overs."""
        self.here = here
        self._partition = partition
        self._anchors = anchors
        self._source = source
        self._recoveries = recoveries or Recoveries()
        self._anchor: tuple[Identity | None] | None = None

    def check(self, replay: Replay, hides: Callable[[], bool] = lambda: False) -> None:
        """Raise `Contradiction` if the worker must not go on with the state that was read.

        Where the changelog `hides` its end behind an open transaction, the part that was read
        proves nothing yet: its end is waited for after the fence.  Another cluster's changelog
        stops it all the same.  A mirror writes that transaction, or a take-over that is about to
        make the partition this cluster's: a fence would roll it back, and the next look comes soon.
        """
        logged = replay.identity
        found = None
        if logged is not None:
            found = logged_contradiction(self.here, logged)
        else:
            # Nothing was ever kept, or an older release kept it: the anchor would know.
            anchor = self.anchor()
            if anchor is not None and not anchor.same_world(self.here):
                found = self._strange(anchor, replay)
            elif anchor is not None and replay.manifest is None:
                found = lost_changelog(self.here, anchor.changelog, "this partition had an owner")
        if found is None and replay.manifest is not None:
            low, end = self._source.bounds()
            found = lost_requests(self._partition, replay.manifest.position, low, end)
        if found is not None and (found.code == OTHER_CLUSTER or not hides()):
            raise found

    def anchor(self) -> Identity | None:
        """The content of the anchor; asked once."""
        if self._anchor is None:
            self._anchor = (self._anchors.read(self._partition),)
        return self._anchor[0]

    def recovered_since(self, generation: int, changelog: ChangelogReader) -> bool:
        """Whether a recovery was done after the one of this generation.

        The anchor says so, or the changelog does: a recovery commits first, and then its anchor may
        fail to be written.
        """
        anchor = self.anchor()
        if anchor is not None and anchor.generation > generation:
            return True
        told = self._recoveries.generation(self.here.changelog, self._partition, changelog)
        return told > generation

    def identity(self, replay: Replay) -> tuple[Identity, bytes | None]:
        """The identity of the partition, and its row where the changelog does not hold it so."""
        logged = replay.identity
        if logged is not None:
            told = logged.filled(self.here)
            return told, None if told == logged else encode_identity(told)
        return self.here, encode_identity(self.here)

    def _strange(self, anchor: Identity, replay: Replay) -> Contradiction | None:
        """The meaning of an anchor of another cluster or topic for the state that was read."""
        if replay.manifest is None:
            return lost_changelog(self.here, anchor.changelog, "this partition had an owner")
        return logged_contradiction(self.here, anchor)
