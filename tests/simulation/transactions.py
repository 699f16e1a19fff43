"""Invariants of the transactions themselves: numbers, epochs, positions, watermarks, digests."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

from tests.simulation.trail import Step, headers_of


def check_transactions(partitions: list[list[Step]]) -> list[str]:
    """Problems of the trail of manifests."""
    problems: list[str] = []
    for steps in partitions:
        for step in steps:
            problems += _alone(step)
        for before, after in pairwise(steps):
            problems += _between(before, after)
    return problems


def _alone(step: Step) -> list[str]:
    where = f"partition {step.partition}, transaction {step.index + 1}"
    manifest = step.manifest
    if manifest is None or step.manifests != 1 or not _is_last(step):
        return [f"I9 {where}: {step.manifests} manifests, or one that is not the last record"]
    problems: list[str] = []
    ids = [headers_of(entry).get("belfry-fire-id", b"") for _, entry in step.fired]
    digest = blake2b(b"".join(ids), digest_size=16).digest()
    if manifest.fired != len(ids) or manifest.digest != digest:
        problems.append(f"I10 {where}: {manifest.fired} fired by the manifest, {len(ids)} found")
    if step.index == 0 and manifest.number != 1:
        problems.append(f"I9 {where}: the first transaction has number {manifest.number}")
    return problems


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
    if after.txn.epoch < before.txn.epoch:
        problems.append(f"I8 {where}: producer epoch {after.txn.epoch} follows {before.txn.epoch}")
    if two.position < one.position:
        problems.append(f"I11 {where}: position {two.position} follows {one.position}")
    if two.watermark_ms < one.watermark_ms:
        problems.append(f"I17 {where}: the watermark goes from {one.watermark_ms} to"
                        f" {two.watermark_ms}")  # fmt: skip
    return problems
