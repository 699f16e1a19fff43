"""Opens the books of a site: its changelog, and how the writers of its outputs ended."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.acceptance.harness.changelog import read_steps
from tests.acceptance.harness.evidence import Evidence
from tests.acceptance.harness.ledger import Books
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.segments import Writers, batches
from tests.acceptance.harness.site import Site


def open_books(site: Site, log_dir: Path, evidence: Evidence) -> Books:
    """What an audit of the changelog needs, once everything has come out."""
    steps = read_steps(site.bootstrap, log_dir, site.topic("changelog"))
    return Books(steps, evidence.fired, _ends(log_dir, evidence.fired), evidence.sent)


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
