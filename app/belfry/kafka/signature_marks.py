"""Marks: the keys that sign each partition's rows, kept out of reach of changelog writers.

A signature by a secret that this worker does not know looks like a stranger's. A worker that took
it for one would go on with a state from long ago. So an owner marks its key before it signs, by the
metadata of an offset of a group without members, like anchors (`anchors.py`):

    keys       fingerprints of the keys that rows may be signed with, the newest first
    whole      every row is signed with the first of them
    required   an owner has taken unsigned rows for a stranger's
    near_from  from this offset on, rows signed by content lie in front of fillers: no owner
               was of a release that writes none. Such a release does not set it

Kafka forgets an offset some days after its last commit, so owners commit their marks every hour.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import orjson
import structlog

from belfry.host import machine
from belfry.kafka.offset_notes import OffsetNotes
from belfry.settings import SharedSettings
from belfry.store.signatures import NOWHERE

# Milliseconds between two commits of marks.
RENEW_EVERY_MS: Final = 3_600_000.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """The keys that sign a partition's rows, and their rules."""

    keys: tuple[str, ...] = ()
    whole: bool = False
    required: bool = False
    near_from: int = 0

    def text(self) -> str:
        """The text that is kept."""
        return orjson.dumps(asdict(self)).decode()


NOTHING: Final = Mark()
# What to do about an unreadable mark.
CHOICE: Final = (
    "Somebody else has committed an offset of this group: take that right away. See that all"
    " workers have each secret that rows are signed with, and delete the group's offset of this"
    " partition: its owner then says it anew."
)


class BadMark(ConnectionError):
    """A text that is not a mark. Until the owner writes it again, no rows can be judged.

    It is handled like a cluster that does not answer: nothing is done, the reason is logged, and
    the call is repeated.
    """


def mark_of(text: str) -> Mark:
    """A mark from its kept text; `BadMark` if the text is not a mark."""
    try:
        told = orjson.loads(text)
        keys, near_from = tuple(told["keys"]), told.get("near_from", NOWHERE)
        mark = Mark(keys, told["whole"], told["required"], near_from)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadMark(f"{text[:60]!r} is no mark of signatures ({error})") from error
    kinds = type(mark.whole), type(mark.required), type(near_from), *map(type, keys)
    if kinds != (bool, bool, int, *(str for _ in keys)):
        raise BadMark(f"{text[:60]!r} is no mark of signatures: a field is of another type")
    return mark


class Marks:
    """Reads and writes marks; ConnectionError if the cluster does not answer.

    Partitions' threads call `read` and `owned`, and the self-check calls `look`.
    """

    def __init__(self, notes: OffsetNotes) -> None:
        self._notes = notes
        self._lock = machine.Lock()
        self._owned: dict[int, Mark] = {}
        self._renewed_ms = 0.0

    def read(self, partition: int) -> Mark:
        """The last mark of a partition; `NOTHING` if there is none."""
        text = self._notes.read([partition]).get(partition)
        try:
            return NOTHING if text is None else mark_of(text)
        except BadMark as error:
            where = f"group {self._notes.group}, partition {partition}"
            raise BadMark(f"{where}: {error}. {CHOICE}") from error

    def owned(self, partition: int, mark: Mark) -> None:
        """Write this mark of a partition that is owned here, now and again every hour."""
        self._write({partition: mark})
        with self._lock:
            self._owned[partition] = mark

    def given_up(self, partition: int) -> None:
        """Stop writing the mark: this worker does not own the partition any more."""
        with self._lock:
            self._owned.pop(partition, None)

    def look(self, now_ms: float) -> None:
        """Write the marks of owned partitions again, if it is time; one thread calls it often."""
        with self._lock:
            due = dict(self._owned)
        if not due or now_ms - self._renewed_ms < RENEW_EVERY_MS:
            return
        self._renewed_ms = now_ms
        try:
            self._write(due)
        except ConnectionError as error:
            log.warning("marks of signatures are not written again", reason=str(error))

    def _write(self, marks: dict[int, Mark]) -> None:
        """Commit marks as metadata of offsets; raises ConnectionError for the first refused one."""
        told = {partition: mark.text() for partition, mark in marks.items()}
        for why in self._notes.write(told).values():
            raise ConnectionError(f"group {self._notes.group}: {why}")


def marks_of(settings: SharedSettings) -> Marks:
    """The marks of a belfry's changelog."""
    group = f"{settings.cluster.app_id}.signatures"
    return Marks(OffsetNotes(settings, group, settings.topic("changelog")))
