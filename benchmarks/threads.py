"""Which threads of broker, workers and load take how much of a core while a command runs.

    benchmarks/threads.py belfry bench recovery --events 1000000

Run by a shell that has started the broker.  All of that shell's processes are looked at once a
second (`/proc`, so Linux only); the table is the mean of the seconds in which workers were busy.
Threads of one name are one row.  Python's threads have their process's name: together they have
one lock, so their sum is at most one core but for what native code does in them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
BUSY: Final = 0.3
SMALL: Final = 0.01
Thread = tuple[str, str]


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


def shares(root: int, child: subprocess.Popen[bytes]) -> list[defaultdict[Thread, float]]:
    """Cores that threads took, by the second."""
    seconds: list[defaultdict[Thread, float]] = []
    before, at = cpu(root), time.monotonic()
    while child.poll() is None:
        time.sleep(1)
        after, now = cpu(root), time.monotonic()
        taken: defaultdict[Thread, float] = defaultdict(float)
        for number, (thread, ticks) in after.items():
            taken[thread] += (ticks - before.get(number, (thread, 0))[1]) / TICKS / (now - at)
        seconds.append(taken)
        before, at = after, now
    return seconds


def part_total(taken: defaultdict[Thread, float], part: str) -> float:
    """Cores that a part took."""
    return sum(share for (of, _), share in taken.items() if of == part)


def main() -> int:
    """Run the command, and show who was busy."""
    child = subprocess.Popen(sys.argv[1:])  # noqa: S603  # what its caller asks for
    seconds = shares(os.getppid(), child)
    busy = [each for each in seconds if part_total(each, "worker") > BUSY]
    print(f"{len(busy)} of {len(seconds)} seconds; cores")
    mean: defaultdict[Thread, float] = defaultdict(float)
    for each in busy:
        for thread, share in each.items():
            mean[thread] += share / len(busy)
    for part in sorted({part for part, _ in mean}):
        rows = {name: share for (of, name), share in mean.items() if of == part}
        print(f"{part:10}{part_total(mean, part):6.2f}")
        for name, share in sorted(rows.items(), key=lambda row: -row[1]):
            if share >= SMALL:
                print(f"  {share:14.2f}  {name}")
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
