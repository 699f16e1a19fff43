"""Follows the records and events of a load of recurring schedules, and acknowledges its fires."""

from __future__ import annotations

from threading import Event, Thread
from typing import Final

from tests.acceptance.harness.evidence import Finding
from tests.acceptance.harness.reading import Reader, lifecycle_of
from tests.acceptance.harness.rhythm_audit import RhythmEvidence, audit_rhythms
from tests.acceptance.harness.rhythms import AWAITED, PULSES, RhythmLoad
from tests.acceptance.harness.site import Site, now_ms

DRAIN_S: Final = 120.0
POLL_S: Final = 0.3


class RhythmFollower:
    """Gathers the evidence of one load of recurring schedules, in a thread of its own."""

    def __init__(self, site: Site, load: RhythmLoad) -> None:
        self.evidence = RhythmEvidence(load.rhythms, load.acks, hooked=bool(load.hook))
        self._load = load
        self._fired = [site.topic(f"fired.{tenant}") for tenant in PULSES]
        self._told = [site.topic("lifecycle")]
        self._reader = Reader(site.bootstrap)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="rhythm-follower", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to read, and to acknowledge."""
        self._thread.start()

    def drain(self) -> list[Finding]:
        """Stop the load, read on until nothing is missing or the time is over, and audit."""
        self._load.stop()
        self._stopping.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        deadline_ms = max(now_ms(), self._load.last_ms) + DRAIN_S * 1000
        while True:
            last = now_ms() > deadline_ms
            fresh = self._read()
            if last or (not fresh and now_ms() > self._load.last_ms):
                findings = audit_rhythms(self.evidence)
                if last or not findings:
                    self._reader.close()
                    return findings
            Event().wait(POLL_S)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(POLL_S):
                self._read()
        except BaseException as error:  # noqa: BLE001  # raised by drain
            self.failure = error

    def _read(self) -> int:
        """Take in what has come out since the last call; how many records that was."""
        fired = self._reader.read(self._fired)
        for record in fired:
            if record.topic.endswith(AWAITED) and record.header("belfry-occurrence") != b"-1":
                name = (record.header("belfry-schedule-id") or b"").decode()
                fire_id = (record.header("belfry-fire-id") or b"").decode()
                self._load.acknowledge(AWAITED, name, fire_id)
        told = self._reader.read(self._told)
        for record in told:
            event = lifecycle_of(record)
            if event["tenant"] in PULSES:
                event["appended_ms"] = record.timestamp_ms
                self.evidence.lifecycle.append(event)
        self.evidence.fired += fired
        return len(fired) + len(told)
