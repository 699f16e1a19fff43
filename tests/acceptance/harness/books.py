"""Opens the books of a site: its changelog, and how the writers of its outputs ended."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.acceptance.harness.changelog import read_steps
from tests.acceptance.harness.evidence import Evidence
from tests.acceptance.harness.ledger import Books
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.segments import Writers, batches
from tests.acceptance.harness.site import Site

# A retry of a webhook is a schedule: its id is the fire, the delivery's number, and the attempt.
_RETRY: Final = re.compile(rb"[0-9a-f]{32}/[0-9]+/[0-9]+")


def open_books(site: Site, log_dir: Path, evidence: Evidence, others: Iterable[str] = ()) -> Books:
    """What an audit of the changelog needs, once everything has come out.

    `others` are tenants that are not in the evidence; manifests tell of their fires too.
    """
    steps = read_steps(site.bootstrap, log_dir, site.topic("changelog"))
    fired = evidence.fired + site.fired(*others) + retries(site.read(site.topic("deliveries")))
    return Books(steps, fired, _ends(log_dir, fired), evidence.sent)


def retries(deliveries: Iterable[Record]) -> list[Record]:
    """Deliveries that fired as schedules of belfry's own; first attempts go with their fires."""
    return [
        each
        for each in deliveries
        if _RETRY.fullmatch(each.header("belfry-schedule-id") or b"") is not None
    ]


def _ends(log_dir: Path, fired: list[Record]) -> dict[tuple[str, int, int], str]:
    """How the transaction ended that each of these records lies in."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for record in fired:
        offsets[record.topic, record.partition].append(record.offset)
    ends: dict[tuple[str, int, int], str] = {}
    for (topic, partition), mine in offsets.items():
        writers = Writers(batches(log_dir, topic, partition))
        for offset in mine:
            wrote = writers.of(offset)
            ends[topic, partition, offset] = wrote.marker if wrote else ""
    return ends
