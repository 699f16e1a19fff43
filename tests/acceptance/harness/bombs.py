"""Batches that unpack to a thousand times their size, and what they do to a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.acceptance.harness.worker import Worker


def as_one_batch(codec: str, records: int) -> dict[str, Any]:
    """Properties of a producer that sends so many records as one batch, when it is flushed."""
    return {
        "compression.type": codec,
        # Gzip's first level makes four megabytes of what fits into one at the sixth.
        "compression.level": 6 if codec == "gzip" else 1,
        "batch.num.messages": records,
        "linger.ms": 60_000,
        "batch.size": 2**31 - 1,
        "message.max.bytes": 1_000_000_000,
        "queue.buffering.max.kbytes": 2_000_000,
    }


# So much is read of one batch; the rest is refused as one.
READ_BYTES: Final = 32_000_000
# What belongs to a record beside its value, at least.
MORE_BYTES: Final = 8


def outcomes_of(records: int, value_bytes: int) -> int:
    """How many refusals answer a batch of so many refused records: one for all that is not read."""
    read = READ_BYTES // (value_bytes + MORE_BYTES)
    return records if records <= read else read + 1


def peak_mb(worker: Worker) -> int:
    """The most memory that a worker has used so far."""
    status = Path(f"/proc/{worker.child.pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if "VmHWM" in line)


def refused(worker: Worker) -> int:
    """How many requests a worker has refused."""
    lines = worker.get("/metrics")[1].splitlines()
    counts = [line for line in lines if line.startswith('belfry_requests_total{outcome="REJECTED"')]
    return sum(int(float(line.split()[-1])) for line in counts)
