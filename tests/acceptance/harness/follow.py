"""Follows what comes out of a site while it comes, and audits it once nothing more is due.

Reading as a run goes on keeps the end of a long run short, and means that what a topic loses later
was seen.  When a verdict was committed is read from the broker's segments at the end.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.acceptance.harness.auditor import audit, drained
from tests.acceptance.harness.evidence import Evidence, Report
from tests.acceptance.harness.reading import Reader, Record, lifecycle_of
from tests.acceptance.harness.segments import Writers, batches
from tests.acceptance.harness.sent import Sent
from tests.acceptance.harness.site import Site, now_ms

DRAIN_S: Final = 90.0
POLL_S: Final = 0.5
# What the audit asks of a lifecycle event; the rest would only fill the memory of a long run.
JUDGED: Final = ("request_id", "outcome", "fire_id")
WHICH_HOME: Final = b"which partition?"


class Follower:
    """Gathers the evidence of one site."""

    def __init__(self, site: Site, sent: list[Sent], tenants: Iterable[str], log_dir: Path) -> None:
        self.evidence = Evidence(site.prefix, sent, [], [], [])
        self._site = site
        # Others send as well, and are judged elsewhere.
        self._tenants = frozenset(tenants)
        self._fired = [site.topic(f"fired.{tenant}") for tenant in self._tenants]
        self._reader = Reader(site.bootstrap)
        self._log_dir = log_dir
        self._unstamped: dict[int, list[tuple[int, dict[str, Any]]]] = defaultdict(list)

    def read(self) -> int:
        """Take in what has come out since the last call; how many records that was."""
        seen, topic = self.evidence, self._site.topic
        fired = self._reader.read(self._fired)
        rejected = self._reader.read([topic("rejected")])
        told = self._reader.read([topic("lifecycle")])
        seen.fired += fired
        seen.rejected += _but_questions(rejected)
        for record in told:
            event = lifecycle_of(record)
            if event["request_id"] and event["tenant"] in self._tenants:
                judged = {name: event[name] for name in JUDGED}
                judged["appended_ms"] = record.timestamp_ms
                seen.lifecycle.append(judged)
                self._unstamped[record.partition].append((record.offset, judged))
        return len(fired) + len(rejected) + len(told)

    def drain(self, last_due_ms: int, patience_s: float = DRAIN_S) -> Report:
        """Read and audit until nothing is missing, or the time is over."""
        deadline_ms = max(now_ms(), last_due_ms) + patience_s * 1000
        report: Report | None = None
        while True:
            last = now_ms() > deadline_ms
            fresh = self.read()
            if last or now_ms() > last_due_ms:
                if fresh or report is None:
                    self._stamp()
                    report = audit(self.evidence)
                if last or drained(report):
                    return report
            time.sleep(POLL_S)

    def _stamp(self) -> None:
        """Note when each verdict's transaction ended."""
        topic = self._site.topic("lifecycle")
        for partition, events in self._unstamped.items():
            writers = Writers(batches(self._log_dir, topic, partition))
            for offset, event in events:
                wrote = writers.of(offset)
                assert wrote is not None, f"{topic}/{partition}@{offset} is in no transaction"
                event["committed_ms"] = wrote.ended_ms
        self._unstamped.clear()

    def close(self) -> None:
        """Read no more."""
        self._reader.close()


def _but_questions(rejected: list[Record]) -> list[Record]:
    """Without the records by which a load asks for the homes of its tenants."""
    return [record for record in rejected if record.value != WHICH_HOME]
