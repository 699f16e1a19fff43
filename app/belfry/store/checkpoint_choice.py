"""Which checkpoints are used, and which are kept.

A checkpoint saves reading: it is worth its way where much of the changelog would be read instead.
Those that may be used are tried one after the other, the newest first.

    changelog   ├──────────────┬─────────────────┬────────────────────────┬──┤ end
    low                      local            older, 40 000          newer, 90 000
    tried       newer; if it is damaged or missing, older; then the log from where local ends

A checkpoint has to meet the same conditions as local state on the disk: it belongs to one
topic of one cluster, and one that was written too long ago might never hear that a schedule was
cancelled, since tombstones of the changelog are not kept for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from belfry.store.checkpoint import Checkpoint
from belfry.store.identity import differ

# So many offsets of a changelog are read in a second or two: no checkpoint is looked for.
QUICKLY_READ: Final = 50_000
# How many checkpoints of a partition are kept: where the newest is damaged, there is another.
KEPT: Final = 2
# Files that belong to no checkpoint are left alone for so long: a worker may be making one.
UNUSED_MS: Final = 24 * 3_600_000


class Sought(NamedTuple):
    """The state that is to be restored, and the local state without a checkpoint.

    `offset` is that of local state, 0 for none; the changelog holds offsets from `low` to `end`.
    State that was written before `oldest_ms` is too old.
    """

    cluster: str
    changelog: str
    partition: int
    store_format: int
    offset: int
    low: int
    end: int
    oldest_ms: float

    @property
    def unread(self) -> int:
        """Offsets that are to be read without a checkpoint."""
        return self.end - max(self.offset, self.low)


def worth_looking(sought: Sought) -> bool:
    """Whether so much would have to be read that a checkpoint may save something."""
    return sought.unread > QUICKLY_READ


def refusal(found: Checkpoint, sought: Sought) -> str:
    """Why a checkpoint is not used, in words that may end a sentence; empty where it may be."""
    if differ(found.cluster, sought.cluster) or differ(found.changelog, sought.changelog):
        return f"it is of topic {found.changelog} in cluster {found.cluster}"
    if found.partition != sought.partition:
        return f"it is of partition {found.partition}"
    if found.store_format != sought.store_format:
        return f"its store has format {found.store_format}, and this release {sought.store_format}"
    if found.written_ms < sought.oldest_ms:
        return "it was written too long ago: tombstones may be gone, or it was found wrong since"
    if found.offset < sought.low:
        return f"the changelog begins at offset {sought.low}, and it goes up to {found.offset}"
    if found.offset - max(sought.offset, sought.low) <= QUICKLY_READ:
        return f"it goes up to offset {found.offset}, which saves next to nothing"
    return ""


def to_try(found: Mapping[str, Checkpoint], sought: Sought) -> list[str]:
    """The names of checkpoints that may be used, the one that saves most reading first.

    One that goes further than the changelog is tried as well, as local state that does: it shows
    that committed transactions are gone from the log, and that is for somebody to decide.
    """
    usable = [name for name, each in found.items() if not refusal(each, sought)]
    return sorted(usable, key=lambda name: _age(name, found), reverse=True)


def to_drop(found: Mapping[str, Checkpoint], kept: int = KEPT) -> list[str]:
    """The names of checkpoints that newer ones have replaced: all but the `kept` newest."""
    return sorted(found, key=lambda name: _age(name, found), reverse=True)[kept:]


def unused_files(
    modified_ms: Mapping[str, float], kept: Iterable[Checkpoint], now_ms: float
) -> list[str]:
    """Which stored files belong to no checkpoint, and have not been touched for a day.

    `modified_ms` has them by name, which is the digest of a file, or the name of an index that
    nobody can read.
    """
    used = {file.sha256 for each in kept for file in each.files}
    return [
        name for name, at in modified_ms.items() if name not in used and now_ms - at > UNUSED_MS
    ]


def _age(name: str, found: Mapping[str, Checkpoint]) -> tuple[int, int, str]:
    return found[name].offset, found[name].written_ms, name
