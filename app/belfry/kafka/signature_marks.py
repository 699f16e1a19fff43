"""What the rows of each partition are signed with, told where writers of the changelog cannot.

A signature by a secret that this worker does not know looks like a stranger's.  A worker that took
it for one would go on with a state from long ago.  So an owner says what it signs with before it
does, as the metadata of an offset of a group without members, as anchors are (`anchors.py`):

    keys       fingerprints of the keys that rows may be signed with, the newest first
    whole      every row is signed with the first of them
    required   an owner has taken unsigned rows for a stranger's
    near_from  from this offset on, what is signed by content lies in front of fillers: no owner
               was of a release that writes none.  One that is does not say it

Kafka forgets an offset some days after its last commit, so owners say theirs again every hour.
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

# How often marks are said again.
RENEW_EVERY_MS: Final = 3_600_000.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a partition's rows are signed with."""

    keys: tuple[str, ...] = ()
    whole: bool = False
    required: bool = False
    near_from: int = 0

    def text(self) -> str:
        """As it is kept."""
        return orjson.dumps(asdict(self)).decode()


NOTHING: Final = Mark()
# What to do about a mark that is none.
CHOICE: Final = (
    "Somebody else has committed an offset of this group: take that right away. See that all"
    " workers have each secret that rows are signed with, and delete the group's offset of this"
    " partition: its owner then says it anew."
)


class BadMark(ConnectionError):
    """A text that is no mark.  Until its owner says it again nobody knows what to believe.

    It is met where the cluster does not answer: nothing is done, the reason is told, and what was
    asked is asked again.
    """


def mark_of(text: str) -> Mark:
    """A mark as it was kept; `BadMark` for a text that is none."""
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
    """Reads and writes marks; ConnectionError where the cluster does not answer.

    `read` and `owned` are called by partitions' threads, and `look` by the self-check.
    """

    def __init__(self, notes: OffsetNotes) -> None:
        self._notes = notes
        self._lock = machine.Lock()
        self._owned: dict[int, Mark] = {}
        self._renewed_ms = 0.0

    def read(self, partition: int) -> Mark:
        """What was said last of a partition; `NOTHING` for nothing."""
        text = self._notes.read([partition]).get(partition)
        try:
            return NOTHING if text is None else mark_of(text)
        except BadMark as error:
            where = f"group {self._notes.group}, partition {partition}"
            raise BadMark(f"{where}: {error}. {CHOICE}") from error

    def owned(self, partition: int, mark: Mark) -> None:
        """Say this of a partition that is owned here, now and again every hour."""
        self._write({partition: mark})
        with self._lock:
            self._owned[partition] = mark

    def given_up(self, partition: int) -> None:
        """This worker owns it no more."""
        with self._lock:
            self._owned.pop(partition, None)

    def look(self, now_ms: float) -> None:
        """Say again what is owned here, if it is time; from one thread, often."""
        with self._lock:
            due = dict(self._owned)
        if not due or now_ms - self._renewed_ms < RENEW_EVERY_MS:
            return
        self._renewed_ms = now_ms
        try:
            self._write(due)
        except ConnectionError as error:
            log.warning("what rows are signed with is not said again", reason=str(error))

    def _write(self, marks: dict[int, Mark]) -> None:
        """Commit marks as metadata of offsets; raises ConnectionError for the first that is
        refused.
        """
        told = {partition: mark.text() for partition, mark in marks.items()}
        for why in self._notes.write(told).values():
            raise ConnectionError(f"group {self._notes.group}: {why}")


def marks_of(settings: SharedSettings) -> Marks:
    """The marks of a belfry's changelog."""
    group = f"{settings.cluster.app_id}.signatures"
    return Marks(OffsetNotes(settings, group, settings.topic("changelog")))
