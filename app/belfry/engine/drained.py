"""The end of a minute bucket: its minute has passed, and all rows due in it have left.

    12:00:10   the last schedule of 12:00 fires          emptied, but others may still come into it
    12:01:00   the minute is over, and it is still empty    drained: told with the next commit
    12:03:20   what waited of 12:01 fires at last           emptied behind its minute: told at once

An end says when the last schedule left, and how long after the last due instant of the bucket that
was.  A bucket that is emptied by cancels alone has no end: nothing of it came out.  The look costs
nothing per event, and ends that are not told yet are lost with their owner, for they are no state.

An end answers what an operator asks of a busy minute: "is all of 12:00 out, and how late was the
last of it?"  It is told in the effects of the step, by a metric and over HTTP.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.store.layout.buckets import Bucket
from belfry.store.layout.keys import MINUTE_MS
from belfry.store.overlaid import Overlaid

# Ends that are remembered in a partition.
RECENT: Final = 1_000


class Drained(NamedTuple):
    """A bucket that has ended: whose, which minute, when its last schedule left, how late that was.

    `late_ms` counts from the bucket's last due instant.
    """

    tenant: bytes
    minute_ms: int
    drained_at_ms: int
    late_ms: int


class Drains:
    """Notices the ends of one partition's buckets; changed by commits alone."""

    def __init__(self, store: Overlaid) -> None:
        self._store = store
        # Emptied buckets, and when; by tenant and minute.
        self._emptied: dict[tuple[bytes, int], tuple[Bucket, int]] = {}
        # The minute of the last look at all of them.
        self._minute = -1
        self.recent: tuple[Drained, ...] = ()
        """The last ends that were told, the newest at the end; safe from any thread."""

    def committed(self, now_ms: int) -> list[Drained]:
        """The buckets that have ended, once the store has written a step at this instant."""
        emptied, minute = self._store.emptied, now_ms // MINUTE_MS
        for bucket in emptied:
            self._emptied[bucket.tenant, bucket.minute] = bucket, now_ms
        # Within a minute, those that have just been emptied alone can be over.
        looked_at = [(each.tenant, each.minute) for each in emptied]
        if minute != self._minute:
            self._minute, looked_at = minute, [*self._emptied]
        over = [each for each in looked_at if each[1] < minute]
        ended = [self._emptied.pop(each) for each in over]
        told = [_drained(*each) for each in ended if not self._filled_again(each[0])]
        if told:
            self.recent = (*self.recent, *told)[-RECENT:]
        return told

    def _filled_again(self, bucket: Bucket) -> bool:
        return self._store.bucket(bucket.tenant, bucket.minute) is not None


def _drained(bucket: Bucket, at_ms: int) -> Drained:
    return Drained(bucket.tenant, bucket.minute_ms, at_ms, max(0, at_ms - bucket.last_ms))
