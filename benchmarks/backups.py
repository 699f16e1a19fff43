"""How fast `belfry backup` and `belfry restore` are, and what CPU each schedule costs the command.

    make bench-backups SCHEDULES=100000 ROUNDS=2

Each round has two belfries of its own, with a broker and a worker each, one after the other. A file
of schedules with payloads of 400 bytes is restored into the first one, which is backed up then; the
second one gets that backup. One line of JSON for each command: seconds, schedules a second, and
microseconds of the command's CPU for each schedule, its start among them. `load` is how busy the
machine was before.

With TREE, the package of another checkout (``app`` in it) is measured in turn with this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic, sleep
from typing import Any

SCHEDULES = int(os.environ.get("SCHEDULES", "100000"))
ROUNDS = int(os.environ.get("ROUNDS", "2"))
OTHER = os.environ.get("TREE", "")
PORT = int(os.environ.get("PORT", "19890"))
TENANTS = 97


def main() -> None:
    """Measure each tree in turn, `ROUNDS` times."""
    trees = {"here": "app"} | ({"there": f"{OTHER}/app"} if OTHER else {})
    for number in range(ROUNDS):
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory() as home:
                _round(Path(home), name, tree, number)


def _round(home: Path, name: str, tree: str, number: int) -> None:
    """One line for each command."""
    made, backup = home / "made.jsonl", home / "backup.jsonl"
    made.write_bytes(b"".join(_lines()))
    told: dict[str, Any] = {"tree": name, "round": number, "schedules": SCHEDULES}
    for stack in ("first", "second"):
        with _belfry(home / stack) as servers:
            file = made if stack == "first" else backup
            _measured(tree, servers, {"bench": "restore", **told}, "restore", str(file))
            if stack == "first":
                _measured(tree, servers, {"bench": "backup", **told}, "backup", str(backup))


def _lines() -> Iterator[bytes]:
    """A backup of schedules that are due in 2040, at an instant each."""
    random = Random(1)
    yield b'{"belfry_backup":1}\n'
    for number in range(SCHEDULES):
        at = (
            f"2040-01-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:00.{number % 1000:03}Z"
        )
        line = {
            "tenant": f"t{number % TENANTS}",
            "schedule_id": f"s{number}",
            "kind": "AT",
            "at": at,
            "payload_text": random.randbytes(200).hex(),
            "standing": {"next_at": at, "occurrence": 0, "version": 1, "paused": False},
        }
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"
    yield json.dumps({"end": {"policies": 0, "schedules": SCHEDULES}}).encode() + b"\n"


@contextmanager
def _belfry(folder: Path) -> Iterator[str]:
    """A broker and a worker; its address."""
    ready = folder.with_suffix(".json")
    ports = ("--kafka-port", PORT, "--registry-port", PORT + 1, "--http-port", PORT + 2)
    command = [sys.executable, "-m", "belfry.cli", "dev", "--data-dir", folder, *ports]
    with subprocess.Popen(  # noqa: S603  # our own
        [*map(str, command), "--ready-file", str(ready)],
        env={**os.environ, "PYTHONPATH": "app"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as stack:
        try:
            while not (ready.exists() and ready.stat().st_size):
                assert stack.poll() is None, "`belfry dev` has ended: run it by itself to see why"
                sleep(0.2)
            yield json.loads(ready.read_bytes())["bootstrap_servers"]
        finally:
            stack.terminate()


def _measured(tree: str, servers: str, told: dict[str, Any], *command: str) -> None:
    """Run a command and tell what it took; an error of it ends all."""
    load, before, begun = os.getloadavg()[0], getrusage(RUSAGE_CHILDREN), monotonic()
    subprocess.run(  # noqa: S603  # our own
        [sys.executable, "-m", "belfry.cli", *command, "--bootstrap-servers", servers],
        env={**os.environ, "PYTHONPATH": tree},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    seconds, after = monotonic() - begun, getrusage(RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {
        "seconds": round(seconds, 2),
        "schedules_per_second": round(SCHEDULES / seconds),
        "cpu_us_per_schedule": round(cpu_s / SCHEDULES * 1e6, 1),
        "load": round(load, 1),
    }
    print(json.dumps(told | found), flush=True)


if __name__ == "__main__":
    main()
