"""One step of a partition: its instant, how far it has come, what it wants to happen, and the undo.

    PartitionStatus ──► Step ──┬─ committed ───► the next one; overlay written, undo log forgotten
                                 └─ rolled back ─► the same one; overlay dropped, undo log played

A step is made from where the partition stands, and thrown away at its end.  What it knows of itself
(scan position, source position, effects) lies in the `Step`, so there is nothing to put back.  What
a partition keeps in memory besides its store (how much waits, which groups are locked, what rates
have used up) changes while a step goes on.  Each such change is noted in the one `UndoLog` of the
partition:

    counts = Tracked(undo)        a dictionary that notes what it was
    undo.attribute(self, "rate")  before an attribute changes
    undo.scratch(joined.clear)    once: what holds for one step only, emptied at the end of each

So commit and roll-back are one call each, in `partition.py`, and no order matters.  A roll-back
costs what the step did, not what is stored: nothing is read anew.

A step that fires one event of tenant `a` and is rolled back:

    12:00:00.000   backlog {a: 2}                     step 7 begins
    12:00:00.001   backlog {a: 1}, noted: a was 2     one event leaves; the store's overlay has it
    12:00:00.030   Kafka refuses the transaction
                   backlog {a: 2}, overlay empty      step 8 begins where step 7 did, and the same
                                                      event fires again, under the same id

Why an undo log, and no copy of the state: a step touches a few tenants of some hundred thousand.
All of this belongs to one thread, the one that owns the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from belfry.engine.effects import Effects
from belfry.firing.due import ScanPosition
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import Pending

Key = TypeVar("Key")
Value = TypeVar("Value")

NO_MANIFEST: Final = Manifest(0, 0, 0, 0, 0, 0, b"")


class PartitionStatus(NamedTuple):
    """Where a partition stands between two steps.

    `manifest` is that of the last commit, and `scan` how far the timeline has been emptied then.
    `heard_ms` is the newest arrival (epoch ms) among the requests that were read: answers that are
    kept for repeated requests are forgotten by it, and not by the clock.
    """

    manifest: Manifest = NO_MANIFEST
    scan: ScanPosition = ScanPosition.at(0)
    heard_ms: int = 0

    @classmethod
    def of(cls, stored: StoredState | None) -> PartitionStatus:
        """Where a partition stands whose store says this of itself; None for an empty store."""
        manifest = NO_MANIFEST if stored is None else stored.manifest
        return cls(manifest, ScanPosition.at(manifest.watermark_ms))


class Step:
    """All that is done between two commits; instants are epoch ms.

    `scan` is how far the timeline has been emptied, by the end of the part that fires.  While that
    goes on, `horizon_ms` is the instant up to which it may empty it: a schedule that comes due
    again until then is `set_aside`, and put where it belongs when the position is known.  `begins`
    is where the partition stood before.  `first_ms` is the instant at which the step began to do
    something.
    """

    __slots__ = (
        "begins",
        "effects",
        "first_ms",
        "heard_ms",
        "horizon_ms",
        "now_ms",
        "position",
        "scan",
        "set_aside",
    )

    def __init__(self, begins: PartitionStatus, effects: Effects) -> None:
        self.begins = begins
        self.effects = effects
        self.scan = begins.scan
        self.position = begins.manifest.position
        self.heard_ms = begins.heard_ms
        self.now_ms = self.horizon_ms = self.first_ms = 0
        self.set_aside: list[tuple[Pending, bytes]] = []

    @classmethod
    def alone(cls, now_ms: int, effects: Effects) -> Step:
        """A step that belongs to no partition's store: what it wants to happen is all of it."""
        step = cls(PartitionStatus(), effects)
        step.at(now_ms)
        return step

    def at(self, now_ms: int) -> None:
        """The following parts of the step happen at this instant."""
        self.now_ms = now_ms
        if self.effects.empty:
            self.first_ms = now_ms

    def begin_firing(self, now_ms: int) -> None:
        """The part that fires begins: all that is due by now may leave."""
        self.at(now_ms)
        self.horizon_ms = max(now_ms, self.scan.reached_ms)

    def sealed(self, owner_epoch: int, pending_change: int, *, read_lease: bool) -> Manifest:
        """The manifest of the step, which is complete: what it did, and where it leads to.

        By the step `pending_change` more schedules wait than before.
        """
        before, fire_ids = self.begins.manifest, self.effects.fire_ids
        manifest = self.effects.manifest = Manifest(
            txn_seq=before.txn_seq + 1,
            owner_epoch=owner_epoch,
            position=self.position,
            watermark_ms=max(before.watermark_ms, self.scan.watermark_ms),
            pending=before.pending + pending_change,
            fired=len(fire_ids),
            digest=blake2b(b"".join(fire_ids), digest_size=16).digest(),
            read_lease=read_lease,
        )
        return manifest

    def stands(self, manifest: Manifest) -> PartitionStatus:
        """Where the partition stands once the step is committed under this manifest."""
        return PartitionStatus(manifest, self.scan, self.heard_ms)


class UndoLog:
    """How to put back what a step has changed in memory.

    One for each partition.  Changes are put back in the reverse of their order, so two changes of
    one attribute end at the first value.
    """

    def __init__(self) -> None:
        self._put_back: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._scratch: list[Callable[[], object]] = []
        self.step = 0
        """Number of the step; a participant that sees another one begins to note anew."""

    def note(self, put_back: Callable[..., object], *given: Any) -> None:
        """Call this, should the step be rolled back."""
        self._put_back.append((put_back, given))

    def attribute(self, owner: object, name: str) -> None:
        """An attribute of this object changes now."""
        self.note(setattr, owner, name, getattr(owner, name))

    def scratch(self, clear: Callable[[], object]) -> None:
        """Call this at the end of every step."""
        self._scratch.append(clear)

    def forget(self) -> None:
        """The step is committed: what it has changed stays."""
        self._end()

    def roll_back(self) -> None:
        """The step is not to have been: put back what it has changed, the last change first."""
        for put_back, given in reversed(self._put_back):
            put_back(*given)
        self._end()

    def _end(self) -> None:
        self._put_back.clear()
        self.step += 1
        for clear in self._scratch:
            clear()


class Tracked(dict[Key, Value]):
    """A dictionary that a roll-back puts back to what it was; no value is None.

    It is read like any other, and changed by `d[key] = …` and `del d[key]` alone.  The first change
    of a key in a step notes what it was; further ones cost no more than in a plain dictionary.
    Other ways to change it raise an AssertionError, for they could not be put back.
    """

    __slots__ = ("_before", "_of_step", "_undo")

    def __init__(self, undo: UndoLog, given: Mapping[Key, Value] | None = None) -> None:
        super().__init__(given or {})
        self._undo = undo
        self._of_step = -1
        self._before: dict[Key, Value | None] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if self._of_step != self._undo.step:
            self._begin()
        if key not in self._before:
            self._before[key] = self.get(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Key) -> None:
        if self._of_step != self._undo.step:
            self._begin()
        if key not in self._before:
            self._before[key] = self[key]
        dict.__delitem__(self, key)

    def _begin(self) -> None:
        self._of_step = self._undo.step
        self._before = {}
        self._undo.note(self._put_back, self._before)

    def _put_back(self, before: Mapping[Key, Value | None]) -> None:
        for key, value in before.items():
            if value is not None:
                dict.__setitem__(self, key, value)
            elif key in self:
                dict.__delitem__(self, key)

    def _unseen(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("what is changed in this way could not be put back")

    clear = pop = popitem = setdefault = update = __ior__ = _unseen


class TrackedOrder(Tracked[Key, Value]):
    """The same where the order says something: a roll-back puts that back as well.

    The first change in a step costs a list of all keys.
    """

    __slots__ = ()

    def _begin(self) -> None:
        # What is noted first is put back last: when all keys are there again.
        self._undo.note(self._put_in_order, list(self))
        super()._begin()

    def _put_in_order(self, order: list[Key]) -> None:
        if list(self) != order:
            values = {key: self[key] for key in order}
            dict.clear(self)
            dict.update(self, values)
