"""What a process holds, sampled over time, and whether it stays flat.

Memory, handles and threads have to stay what they are once a worker is warm.  The local store may
not stay flat: it keeps a marker of each fired event for a day, so its growth is judged per event.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Final

# The first fifth of a run is for warming up: caches, memtables, threads of clients.
WARM: Final = 0.2
MEMORY_SHARE: Final = 0.15
MEMORY_MB: Final = 20.0
MOST_HANDLES: Final = 8
MOST_THREADS: Final = 4
MOST_BYTES_PER_EVENT: Final = 600.0
LATENESS_SLACK_MS: Final = 50.0
PAGE_MB: Final = os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process held at one moment; `at_s` counts from the start of the run."""

    at_s: float
    memory_mb: float
    handles: int
    threads: int
    disk_mb: float


def sample(pid: int, data_dir: Path, since: float) -> Sample:
    """Look at a process and its data directory now."""
    proc = Path(f"/proc/{pid}")
    resident_pages = int((proc / "statm").read_text("ascii").split()[1])
    return Sample(
        at_s=round(time.monotonic() - since, 1),
        memory_mb=round(resident_pages * PAGE_MB, 1),
        handles=len(list((proc / "fd").iterdir())),
        threads=len(list((proc / "task").iterdir())),
        disk_mb=round(_size(data_dir) / 1e6, 3),
    )


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            # A table may be compacted away while it is looked at.
            continue
    return total


def growth(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """By how much a straight line through the warm samples rises, from the first to the last."""
    warm = _warm(samples)
    times, values = [each.at_s for each in warm], [of(each) for each in warm]
    middle, mean = fmean(times), fmean(values)
    spread = sum((at - middle) ** 2 for at in times)
    slope = sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True))
    return slope / spread * (times[-1] - times[0])


def grown(samples: Sequence[Sample], events: int) -> list[str]:
    """What does not stay flat, in sentences; `events` fired while the samples were taken."""
    warm = _warm(samples)
    memory, limit_mb = growth(samples, lambda each: each.memory_mb), MEMORY_MB
    limit_mb = max(limit_mb, MEMORY_SHARE * fmean(each.memory_mb for each in warm))
    handles = growth(samples, lambda each: each.handles)
    threads = growth(samples, lambda each: each.threads)
    # In units of one event: the store keeps markers, and compaction makes its size go up and down.
    stored = growth(samples, lambda each: each.disk_mb) * 1e6 / max(1, events * (1 - WARM))
    judged = [
        (memory, limit_mb, "MB of memory"),
        (handles, MOST_HANDLES, "handles"),
        (threads, MOST_THREADS, "threads"),
        (stored, MOST_BYTES_PER_EVENT, "bytes on disk per event"),
    ]
    return [
        f"{found:.1f} more {what} than at the start; {most:.1f} are allowed"
        for found, most, what in judged
        if found > most
    ]


def late(medians_ms: Sequence[float]) -> list[str]:
    """Whether the median lateness of later minutes is above that of earlier ones."""
    warm = list(medians_ms[int(len(medians_ms) * WARM) :])
    half = len(warm) // 2
    if half == 0:
        return []
    before_ms, after_ms = median(warm[:half]), median(warm[half:])
    if after_ms <= 1.3 * before_ms + LATENESS_SLACK_MS:
        return []
    return [f"the median lateness rose from {before_ms:.0f} to {after_ms:.0f} ms"]


def _warm(samples: Sequence[Sample]) -> list[Sample]:
    warm = list(samples[int(len(samples) * WARM) :])
    assert len(warm) >= 3, f"{len(samples)} samples are too few to judge"
    return warm
