"""Tenants' own input topics of one partition, and the thread that reads them for its owner.

open (fence) ─ ask for the committed positions ─ read ─► one transaction: requests forwarded, and
                                                         the positions behind them

The owner of the partition owns its tenant inputs.  After a failure the owner first proves that it
still is the owner, by a commit, and then `begin`s anew (`tenant_reading.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from belfry.host import machine
from belfry.host.background import END, Background
from belfry.kafka.fetch_position import Where
from belfry.partitions.tenant_dependencies import TenantInputDependencies
from belfry.partitions.tenant_reading import TenantInputReading
from belfry.telemetry.limited import LimitedLogger

AGAIN_MS: Final = 1_000.0

log = structlog.get_logger(__name__)


class TenantInputs:
    """Hands requests over from the topics of the tenants that live at one partition."""

    def __init__(
        self, home: int, means: TenantInputDependencies, woken: Callable[[], None]
    ) -> None:
        self._home = home
        self._means = means
        self._woken = woken
        self._log = LimitedLogger(
            log.bind(partition=home), clock=lambda: means.clock.monotonic_ms() / 1000
        )
        self._stopping = machine.Event()
        self._thread: Background | None = None
        self._ended_ms = 0.0
        self._read_once = False

    @property
    def caught_up(self) -> bool:
        """Whether each topic has been read up to its end of when reading began."""
        return self._read_once or not self._means.topics.of(self._home)

    @property
    def wanted(self) -> bool:
        """Whether there are topics to read and no thread reads them: `begin` after a commit."""
        if self._stopping.is_set() or (self._thread is not None and self._thread.alive):
            return False
        now_ms = self._means.clock.monotonic_ms()
        rested = self._thread is None or now_ms - self._ended_ms >= AGAIN_MS
        return rested and bool(self._means.topics.of(self._home))

    def begin(self) -> None:
        """Read; called when a commit has just shown that the partition is owned here."""
        if self.wanted:
            name = f"tenant-inputs-{self._home}"
            self._thread = Background(name, self._read, log, "tenants' topics not read")
            self._thread.start()

    def ask_to_stop(self) -> None:
        """Stop reading soon."""
        self._stopping.set()

    def close(self) -> None:
        """Finish the transaction under way and stop reading."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()

    # -- the thread ------------------------------------------------------------------------------

    def _read(self) -> object:
        """Read until the first failure, or until the stop."""
        reading: TenantInputReading | None = None
        ends: dict[Where, int] | None = None
        try:
            reading = TenantInputReading(self._home, self._means, self._log)
            reading.open()
            while not self._stopping.is_set():
                reading.turn(self._stopping)
                if not self._read_once and reading.at_ends:
                    ends = self._means.readable(reading.ended) if ends is None else ends
                    self._see_whether_all_is_read(reading, ends)
        except Exception as error:  # noqa: BLE001  # the owner begins anew, if it still is the owner
            self._log.warning("tenant_inputs", "tenants' topics not read", cause=str(error))
        finally:
            self._ended_ms = self._means.clock.monotonic_ms()
            if reading is not None:
                reading.close()
        return END

    def _see_whether_all_is_read(self, reading: TenantInputReading, ends: dict[Where, int]) -> None:
        """Note when all records before `ends` have been read; these were asked for at all ends.

        An empty fetch is no proof: a leader that was just elected may know fewer records for a
        moment than others have read. It answers with the end of a log only once it knows it.
        """
        if reading.has_passed(ends):
            self._read_once = True
            self._woken()
