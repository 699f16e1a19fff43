"""Which threads of broker, workers and load take how much of a core while a command runs.

    benchmarks/threads.py belfry bench recovery --events 1000000

Run by a shell that has started the broker.  All of that shell's processes are looked at once a
second (`/proc`, so Linux only).  The command prints a line of JSON that says how many `seconds` it
measured; the table is the mean of as many seconds on end, those in which the workers took most.
That should be the line's `cpu_seconds` by its `seconds`.
Threads of one name are one row.  Python's threads have their process's name: together they have
one lock, so their sum is at most one core but for what native code does in them.  `disk` is what
the machine writes, and how many cores are idle while something waits for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

TICKS: Final = os.sysconf("SC_CLK_TCK")
SMALL: Final = 0.01
SECTOR_BYTES: Final = 512
Thread = tuple[str, str]


class Second(NamedTuple):
    """Cores that threads took; MB written to disks, and cores that waited for them."""

    taken: dict[Thread, float]
    written_mb: float
    waited: float


def descendants(root: int) -> dict[int, str]:
    """Process ids below one, and which part each of them plays."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (stat := text(entry / "stat")):
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {root}
    for _ in range(6):
        found |= {pid for pid, parent in parents.items() if parent in found}
    return {pid: part_of(text(Path(f"/proc/{pid}/cmdline"))) for pid in found - {os.getpid()}}


def part_of(command: str) -> str:
    """Whose process a command line is."""
    words = command.split("\0")
    if words[0].endswith("java"):
        return "broker" if "kafka.Kafka" in words else "registry"
    return "worker" if "worker" in words else "load"


def text(path: Path) -> str:
    """What a file says; nothing where its process has ended."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def cpu(root: int) -> dict[int, tuple[Thread, int]]:
    """Part, name and ticks of CPU of each thread."""
    found: dict[int, tuple[Thread, int]] = {}
    for pid, part in descendants(root).items():
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            head, _, tail = text(stat).rpartition(")")
            if tail:
                times = tail.split()[11:13]
                name = head.partition("(")[2].rstrip("0123456789#-/ ")
                found[int(stat.parent.name)] = ((part, name), sum(map(int, times)))
    return found


def disk() -> tuple[float, float]:
    """MB written to all disks, and seconds in which cores were idle while something waited."""
    sizes = [row.split() for row in text(Path("/proc/diskstats")).splitlines()]
    # A device that is part of another one is not counted again.
    whole = [row for row in sizes if Path(f"/sys/block/{row[2]}/device").exists()]
    written = sum(int(row[9]) for row in whole) * SECTOR_BYTES / 1e6
    return written, int(text(Path("/proc/stat")).split()[5]) / TICKS


def watch(root: int, child: subprocess.Popen[str]) -> list[Second]:
    """What happens, by the second, until the child ends."""
    seconds: list[Second] = []
    before, written, waited, at = cpu(root), *disk(), time.monotonic()
    while child.poll() is None:
        time.sleep(1)
        after, (written_now, waited_now), now = cpu(root), disk(), time.monotonic()
        taken: defaultdict[Thread, float] = defaultdict(float)
        for number, (thread, ticks) in after.items():
            taken[thread] += (ticks - before.get(number, (thread, 0))[1]) / TICKS / (now - at)
        took = now - at
        seconds.append(Second(taken, (written_now - written) / took, (waited_now - waited) / took))
        before, written, waited, at = after, written_now, waited_now, now
    return seconds


def part_total(taken: dict[Thread, float], part: str) -> float:
    """Cores that a part took."""
    return sum(share for (of, _), share in taken.items() if of == part)


def measured_in(seconds: list[Second], number: int) -> list[Second]:
    """So many seconds on end, those in which the workers took most."""
    totals = [part_total(each.taken, "worker") for each in seconds]
    starts = range(max(1, len(totals) - number + 1))
    first = max(starts, key=lambda start: sum(totals[start : start + number]))
    return seconds[first : first + number]


def mean_of(seconds: list[Second]) -> Second:
    """What a second was like."""
    taken: defaultdict[Thread, float] = defaultdict(float)
    for each in seconds:
        for thread, share in each.taken.items():
            taken[thread] += share / len(seconds)
    written = sum(each.written_mb for each in seconds) / len(seconds)
    return Second(taken, written, sum(each.waited for each in seconds) / len(seconds))


def show(mean: Second) -> None:
    """The table."""
    for part in sorted({part for part, _ in mean.taken}):
        rows = {name: share for (of, name), share in mean.taken.items() if of == part}
        print(f"{part:10}{part_total(mean.taken, part):6.2f}")
        for name, share in sorted(rows.items(), key=lambda row: -row[1]):
            if share >= SMALL:
                print(f"  {share:14.2f}  {name}")
    print(f"disk      {mean.waited:6.2f}  {mean.written_mb:.0f} MB/s")


def main() -> int:
    """Run the command, and show who was busy."""
    child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)  # noqa: S603  # its caller's
    seconds = watch(os.getppid(), child)
    assert child.stdout is not None
    said = child.stdout.read().strip()
    print(said)
    if child.returncode:
        return child.returncode
    found = json.loads(said.splitlines()[-1])
    measured = measured_in(seconds, round(found["seconds"]))
    used = found["cpu_seconds"] / found["seconds"]
    print(
        f"{len(measured)} of {len(seconds)} seconds; cores; workers by their own count {used:.2f}"
    )
    show(mean_of(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
