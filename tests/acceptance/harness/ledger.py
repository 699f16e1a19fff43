"""The auditor of the changelog: did each step say what it did, and did one owner follow the other?

It shares no code with belfry.  Its findings are those that the auditor of the outputs cannot have:
what a `read_committed` reader of outputs never sees, and what is right only by accident.

    segments ──► who wrote, how it ended  ┐
    changelog ─► manifests, markers       ├─ per partition, step by step ─► findings
    outputs ───► fire ids                 ┘
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Final

from tests.acceptance.harness.changelog import Left, Step
from tests.acceptance.harness.evidence import Finding, rfc3339
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import Sent

# A broker ends a transaction after its time-out, which it looks for every ten seconds.
LONGEST_OPEN_MS: Final = 10_000 + 10_000 + 5_000
# A partition's producers: its transactional ids are used in turn.
IN_TURN: Final = 2
# An owner asks where the log ends some time before its first manifest stands there.
ASKED_BEFORE_MS: Final = 5_000
CATCH_UP_MS: Final = 30_000
# The tenant that retries of webhooks are schedules of; they come out on the topic of deliveries.
RETRIES: Final = b"belfry-deliveries"
LEDGER_INVARIANTS: Final = {
    "aborted": "A read_committed reader saw a record that no committed transaction wrote.",
    "fenced": "An owner committed after another had taken its place, or epochs went back.",
    "torn": "A committed step has not exactly one manifest, at its end.",
    "gap": "Committed steps are not numbered without gaps.",
    "manifest": "A manifest's count or digest of fires is not what came out.",
    "unlisted": "A record came out that no step says it fired.",
    "position": "A source position went back, or stays before what was sent.",
    "watermark": "A watermark went back.",
    "open": "A transaction was open for longer than its time-out allows, or is open still.",
    "hasty": "A new owner fired before it had taken in what lay in the log.",
}


@dataclass(slots=True)
class Books:
    """All that an audit of the changelog looks at; `ends` is how each output's writer ended."""

    steps: dict[int, list[Step]]
    fired: list[Record]
    ends: dict[tuple[str, int, int], str]
    sent: list[Sent]


class Ledger:
    """One audit: `findings` are its result, `digests` counts the steps checked to the last fire."""

    def __init__(self, books: Books) -> None:
        self.findings: list[Finding] = []
        self.digests = 0
        self._books = books
        self._ids: dict[tuple[bytes, bytes], list[bytes]] = defaultdict(list)
        self._arrived: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def run(self) -> list[Finding]:
        """Judge everything."""
        self._look_at_outputs()
        self._look_at_requests()
        for partition, steps in sorted(self._books.steps.items()):
            self._judge_writers(partition, steps)
            committed = [step for step in steps if step.committed]
            self._judge_shape(partition, committed)
            whole = [step for step in committed if len(step.manifests) == 1]
            self._judge_progress(partition, whole)
            self._judge_takeovers(partition, whole)
            for step in whole:
                self._judge_manifest(partition, step)
        self._judge_listed()
        return self.findings

    def _find(self, invariant: str, sentence: str) -> None:
        assert invariant in LEDGER_INVARIANTS
        self.findings.append(Finding(invariant, f"{invariant}: {sentence}"))

    def _look_at_outputs(self) -> None:
        for record in self._books.fired:
            place = (record.topic, record.partition, record.offset)
            if self._books.ends.get(place) != "commit":
                self._find("aborted", f"{place} ended by {self._books.ends.get(place)!r}")
            if record.header("belfry-occurrence") != b"-1":
                self._ids[_named(record)].append(record.header("belfry-fire-id") or b"")

    def _look_at_requests(self) -> None:
        for one in self._books.sent:
            self._arrived[one.partition].append((one.appended_ms, one.offset))
        for arrived in self._arrived.values():
            arrived.sort()

    # -- who wrote, and how it ended -------------------------------------------------------------

    def _judge_writers(self, partition: int, steps: Sequence[Step]) -> None:
        newest: dict[int, int] = {}
        order: list[int] = []
        for step in steps:
            wrote = step.wrote
            where = f"partition {partition}, offsets {wrote.first} to {wrote.last}"
            if wrote.producer not in order:
                order.append(wrote.producer)
            gone = wrote.producer not in order[-IN_TURN:]
            superseded = gone or wrote.epoch < newest.get(wrote.producer, 0)
            if superseded and step.committed:
                self._find("fenced", f"{where}: producer {wrote.producer}, epoch {wrote.epoch}")
            newest[wrote.producer] = max(wrote.epoch, newest.get(wrote.producer, 0))
            if not wrote.marker:
                self._find("open", f"{where}: neither committed nor aborted")
            elif wrote.ended_ms - wrote.begun_ms > LONGEST_OPEN_MS:
                self._find("open", f"{where}: open for {wrote.ended_ms - wrote.begun_ms} ms")

    def _judge_shape(self, partition: int, committed: Sequence[Step]) -> None:
        for step in committed:
            if len(step.manifests) != 1 or step.behind_manifest:
                self._find(
                    "torn",
                    f"partition {partition}, offset {step.wrote.first}: {len(step.manifests)}"
                    f" manifests, {step.behind_manifest} rows behind the last one",
                )

    # -- what the manifests say, one after the other -----------------------------------------------

    def _judge_progress(self, partition: int, whole: Sequence[Step]) -> None:
        for before, step in pairwise(whole):
            old, new = before.manifests[0], step.manifests[0]
            where = f"partition {partition}, transaction {new.txn_seq}"
            if new.txn_seq != old.txn_seq + 1:
                self._find("gap", f"{where} follows {old.txn_seq}")
            if new.owner_epoch < old.owner_epoch:
                self._find("fenced", f"{where}: owner {new.owner_epoch} after {old.owner_epoch}")
            if new.position < old.position:
                self._find("position", f"{where}: {new.position} after {old.position}")
            if new.watermark_ms < old.watermark_ms:
                self._find("watermark", f"{where}: {new.watermark_ms} after {old.watermark_ms}")
        last = max((offset for _, offset in self._arrived[partition]), default=-1)
        if whole and whole[-1].manifests[0].position <= last:
            self._find("position", f"partition {partition} stays before offset {last}")

    def _judge_takeovers(self, partition: int, whole: Sequence[Step]) -> None:
        """After each first manifest of an owner: no fire before what lay in the log is taken in."""
        claim: Step | None = None
        owner = taken_in = 0
        for step in whole:
            now = step.manifests[0]
            if now.owner_epoch > owner:
                owner, claim = now.owner_epoch, step
            elif claim is not None and now.watermark_ms > claim.manifests[0].watermark_ms:
                self._judge_first_fire(partition, (claim, step), taken_in)
                claim = None
            taken_in = now.position

    def _judge_first_fire(self, partition: int, of: tuple[Step, Step], taken_in: int) -> None:
        claim, step = of
        asked_ms = claim.wrote.begun_ms - ASKED_BEFORE_MS
        arrived = self._arrived[partition]
        count = bisect_left(arrived, (asked_ms, 0))
        end = max((offset for _, offset in arrived[:count]), default=-1)
        waited_ms = step.wrote.begun_ms - claim.wrote.begun_ms
        if step.manifests[0].fired and taken_in <= end and waited_ms < CATCH_UP_MS:
            self._find(
                "hasty",
                f"partition {partition}, transaction {step.manifests[0].txn_seq} fired at position"
                f" {taken_in}, {end} lay in the log",
            )

    # -- manifests against outputs ---------------------------------------------------------------

    def _judge_manifest(self, partition: int, step: Step) -> None:
        """Where each fire left a marker, the digest can be computed anew from the outputs."""
        manifest = step.manifests[0]
        where = f"partition {partition}, transaction {manifest.txn_seq}"
        if len(step.left) > manifest.fired:
            self._find("manifest", f"{where}: {len(step.left)} markers, {manifest.fired} fires")
        if len(step.left) != manifest.fired:
            # An extra fire leaves no marker, and a new life replaces one in the same step.
            return
        ids = [self._ids.get(_key(left), []) for left in step.left]
        if any(len(of) > 1 for of in ids):
            return
        self.digests += 1
        joined = b"".join(identity for of in ids for identity in of)
        if blake2b(joined, digest_size=16).digest() != manifest.digest:
            missing = [left.name for left, of in zip(step.left, ids, strict=True) if not of]
            self._find("manifest", f"{where}: not the fires that came out; missing {missing[:5]}")

    def _judge_listed(self) -> None:
        every = [step for steps in self._books.steps.values() for step in steps if step.committed]
        listed = {_key(left) for step in every for left in step.left}
        renewed = {
            name
            for step in every
            if step.manifests and len(step.left) < step.manifests[0].fired
            for name in step.waiting
        }
        for name, due in self._ids:
            if (name, due) not in listed and name not in renewed:
                self._find("unlisted", f"{name!r} due {due!r} came out")


def _named(record: Record) -> tuple[bytes, bytes]:
    retried = record.topic.endswith(".deliveries")
    tenant = RETRIES if retried else record.topic.rpartition("fired.")[2].encode()
    schedule_id = record.header("belfry-schedule-id") or b""
    return tenant + b"/" + schedule_id, record.header("belfry-scheduled-at") or b""


def _key(left: Left) -> tuple[bytes, bytes]:
    return left.name, rfc3339(left.due_ms)
