"""The end of a scene: what came out is judged, and what struck is noted.

Three auditors judge: of the outputs (`auditor.py`), of the changelog (`ledger.py`), and of the
local stores (`copies.py`), of which one was left by SIGKILL and one by an orderly stop, and those
of guests by either.  Users have a fourth, `belfry verify`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from belfry.recovery.local_state import ASIDE
from tests.acceptance.harness import sent
from tests.acceptance.harness.books import open_books
from tests.acceptance.harness.copies import differences, stored
from tests.acceptance.harness.evidence import Finding, Report
from tests.acceptance.harness.ledger import Ledger
from tests.acceptance.harness.load import CANARY
from tests.acceptance.harness.reading import Record, read_all
from tests.acceptance.harness.verifying import verified
from tests.chaos.scene import Scene, note


def judge(scene: Scene) -> Report:
    """Finish the scene; fails if anything was found."""
    report = scene.finish()
    sent.write(scene.load.sent, scene.site.home / "sent.jsonl")
    evidence = scene.follower.evidence
    books = open_books(scene.site, scene.log_dir, evidence, scene.others)
    for partition, offset in scene.strangers:
        steps = books.steps[partition]
        books.steps[partition] = [each for each in steps if each.wrote.first != offset]
    ledger = Ledger(books)
    findings = report.findings + ledger.run() + _of_copies(scene)
    findings += of_logs([worker.log for worker in scene.site.workers])
    findings += _of_topics(scene)
    note(scene.strikes)
    figures = {
        "strikes": len(scene.strikes),
        "requests": report.requests,
        "fired": report.fired,
        "recurring": len(scene.rhythms.rhythms),
        "recurring_fired": len(scene.rhythm_follower.evidence.fired),
        "digests": ledger.digests,
        "findings": len(findings),
        "overrun": report.overrun,
        "largest_lateness_ms": max(report.lateness_ms, default=0),
    }
    print(json.dumps(figures), file=sys.__stderr__)  # the run's result
    assert not findings, "\n".join([report.summary(), *(each.sentence for each in findings[:30])])
    return report


def of_logs(logs: Iterable[Path]) -> list[Finding]:
    """What the workers' logs show and must not: anything of a payload."""
    return [
        Finding("log", f"log: {path} shows a payload")
        for path in logs
        if path.exists() and CANARY in path.read_bytes()
    ]


def _of_topics(scene: Scene) -> list[Finding]:
    """What `belfry verify` says; strangers' records are what some scenes are about."""
    told = verified(scene.site).report["findings"]
    return [Finding(each["kind"], f"verify: {each}") for each in told if each["kind"] != "stranger"]


def _of_copies(scene: Scene) -> list[Finding]:
    found: list[Finding] = []
    changes = read_all(scene.site.bootstrap, scene.site.topic("changelog"))
    for worker in scene.site.workers:
        every = worker.data_dir.glob
        # What was set aside is not used, and need not agree with anything.
        for folder in sorted(set(every("partition-*")) - set(every(f"*.{ASIDE}-*"))):
            told = _of_copy(folder, changes)
            found += [Finding("copy", f"{worker.data_dir.parent.name}: {each}") for each in told]
    return found


def _of_copy(folder: Path, changes: Sequence[Record]) -> list[str]:
    partition = int(folder.name.rpartition("-")[2])
    mine = [record for record in changes if record.partition == partition]
    return [f"{folder.name}: {each}" for each in differences(stored(folder), mine)[:5]]
