"""Invariants of the transactions themselves: numbers, epochs, positions, watermarks, digests."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Final

from tests.simulation.broker import Entry
from tests.simulation.delivered import left_by
from tests.simulation.trail import Step, headers_of

MOST_ORDERS: Final = 5_000


def check_transactions(partitions: list[list[Step]]) -> list[str]:
    """Problems of the trail of manifests."""
    problems: list[str] = []
    for steps in partitions:
        for step in steps:
            problems += _alone(step)
        for before, after in pairwise(steps):
            problems += _between(before, after)
        problems += _epochs(steps)
    return problems


def _epochs(steps: list[Step]) -> list[str]:
    """Epochs that went back: of each transactional id, whoever writes with it."""
    problems: list[str] = []
    newest: dict[str, int] = {}
    for step in steps:
        name, epoch = step.txn.producer, step.txn.epoch
        if epoch < (before := newest.get(name, epoch)):
            where = f"partition {step.partition}, transaction {step.index + 1}"
            problems.append(f"I8 {where}: epoch {epoch} of {name} follows {before}")
        newest[name] = max(before, epoch)
    return problems


def _alone(step: Step) -> list[str]:
    where = f"partition {step.partition}, transaction {step.index + 1}"
    manifest = step.manifest
    if manifest is None or step.manifests != 1 or not _is_last(step):
        return [f"I9 {where}: {step.manifests} manifests, or one that is not the last record"]
    problems: list[str] = []
    fired = left_by(step)
    ids = [headers_of(entry).get("belfry-fire-id", b"") for _, entry in fired]
    if manifest.fired != len(ids) or not _agrees(step, fired, manifest.digest):
        problems.append(f"I10 {where}: {manifest.fired} fired by the manifest, {len(ids)} found")
    if step.index == 0 and manifest.number != 1:
        problems.append(f"I9 {where}: the first transaction has number {manifest.number}")
    return problems


def _agrees(step: Step, fired: list[tuple[str, Entry]], told: bytes) -> bool:
    """Whether a digest is that of these ids.

    Where batches came, in one of the orders that their partitions allow: the first so many are
    tried, and beyond those the count alone can tell.
    """
    queues: dict[object, list[bytes]] = {}
    for topic, entry in fired:
        name = headers_of(entry).get("belfry-fire-id", b"")
        place = (
            (topic, step.places[entry.order]) if step.txn.in_batches or step.has_beside else None
        )
        queues.setdefault(place, []).append(name)
    orders = _merged(list(queues.values()), blake2b(digest_size=16))
    return any(found == told or tried == MOST_ORDERS for tried, found in enumerate(orders, 1))


def _merged(queues: list[list[bytes]], so_far: blake2b) -> Iterator[bytes]:
    """What comes of every merge of these queues that keeps the order of each."""
    if not queues:
        yield so_far.digest()
    for queue in queues:
        digest = so_far.copy()
        digest.update(queue[0])
        others = [other for other in queues if other is not queue]
        yield from _merged([queue[1:], *others] if queue[1:] else others, digest)


def _is_last(step: Step) -> bool:
    return (step.rows[-1].key or b"").startswith(b"\0m")


def _between(before: Step, after: Step) -> list[str]:
    one, two = before.manifest, after.manifest
    if one is None or two is None:
        return []
    where = f"partition {after.partition}, transaction {after.index + 1}"
    problems: list[str] = []
    if two.number != one.number + 1:
        problems.append(f"I9 {where}: number {two.number} follows {one.number}")
    if two.epoch < one.epoch:
        problems.append(f"I7 {where}: owner epoch {two.epoch} follows {one.epoch}")
    if two.position < one.position:
        problems.append(f"I11 {where}: position {two.position} follows {one.position}")
    if two.watermark_ms < one.watermark_ms:
        problems.append(f"I17 {where}: the watermark goes from {one.watermark_ms} to"
                        f" {two.watermark_ms}")  # fmt: skip
    return problems
