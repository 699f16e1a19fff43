"""What a take-over compares before it believes: ids, anchors, and where the input begins and ends.

It is looked at twice: before the fence, so that a partition that has to stop fences nobody, and
after it, when nobody else writes any more.
"""

from __future__ import annotations

from collections.abc import Callable

from belfry.store.identity import (
    Contradiction,
    Identity,
    encode_identity,
    logged_contradiction,
    lost_changelog,
    lost_requests,
)
from belfry.store.replay import Replay
from belfry.worker.anchors import Anchors
from belfry.worker.partition_log import PartitionLog


class Evidence:
    """Evidence about one partition, as one take-over asks for it."""

    def __init__(
        self, partition: int, here: Identity, anchors: Anchors, source: PartitionLog
    ) -> None:
        self.here = here
        self._partition = partition
        self._anchors = anchors
        self._source = source
        self._anchor: tuple[Identity | None] | None = None

    def check(self, replay: Replay, hides: Callable[[], bool] = lambda: False) -> None:
        """Raise `Contradiction` where the state that was read is none to go on with.

        Where the changelog `hides` its end behind an open transaction, what was read of it proves
        nothing yet: that is waited for after the fence.
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
            low, _ = self._source.ends()
            end = self._source.log_end()
            found = lost_requests(self._partition, replay.manifest.position, low, end)
        if found is not None and not hides():
            raise found

    def anchor(self) -> Identity | None:
        """What the anchor says; asked once."""
        if self._anchor is None:
            self._anchor = (self._anchors.read(self._partition),)
        return self._anchor[0]

    def identity(self, replay: Replay) -> tuple[Identity, bytes | None]:
        """The identity of the partition, and its row where the changelog does not hold it yet."""
        logged = replay.identity
        if logged is not None:
            return logged, None
        return self.here, encode_identity(self.here)

    def _strange(self, anchor: Identity, replay: Replay) -> Contradiction | None:
        if replay.manifest is None:
            return lost_changelog(self.here, anchor.changelog, "this partition had an owner")
        return logged_contradiction(self.here, anchor)
