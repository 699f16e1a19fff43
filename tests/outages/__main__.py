"""Ten planted outages, and what told of each, how soon and in which words.

    python -m tests.outages [WORD …]      those whose names hold one of the words, or all

It starts a broker, a registry, a Prometheus with belfry's alerts and two workers, plants one outage
after the other, and prints a table and the words themselves.  It needs Linux and root, for a small
disk of its own; `make outages` fetches Prometheus.  All ten take a quarter of an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from belfry.devstack import Apicurio, Kafka
from tests.acceptance.harness.prometheus import Prometheus
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import Site
from tests.chaos.clock import MovedClock
from tests.chaos.faults.disks import small_disk
from tests.outages.planted import OUTAGES, RESERVE_MB, Outage, Scene
from tests.outages.signs import Seen, Signs, Watch

LIMIT_S: Final = 100.0
SETTINGS: Final = {
    "CANARY_INTERVAL_MS": "10000",
    "CREATE_TOPICS": "false",
    "DISK_RESERVE_MB": str(RESERVE_MB),
    "HTTP_WORKER_SECRET": "a secret that two workers share",
    "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]',
    # Those of a worker that nobody has told otherwise.
    "SESSION_TIMEOUT_MS": "10000",
    "HEARTBEAT_INTERVAL_MS": "3000",
}
TENANTS: Final = ("acking", "flooding", "hooked", "shop")


def run(words: Sequence[str]) -> Iterator[Seen]:
    """Play the outages that these words choose, one after the other; each is told once it is over.

    What was seen so far is not lost where a worker does not recover from one.
    """
    chosen = [each for each in OUTAGES if not words or any(word in each.name for word in words)]
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory()))
        kafka, registry = Kafka(home / "kafka").start(), Apicurio(home / "registry").start()
        stack.callback(kafka.stop)
        stack.callback(registry.stop)
        kafka.wait_ready(180)
        registry.wait_ready(180)
        given = {**SETTINGS, "SCHEMA_REGISTRY_URL": registry.url}
        site = stack.enter_context(Site(kafka.bootstrap_servers, "outages", home, **given))
        clock = _started(stack, site)
        scene = Scene(kafka, registry, site, clock, stack.enter_context(Receiver()))
        ports = [worker.http_port for worker in site.workers]
        watch = Watch(site, stack.enter_context(Prometheus(home / "prometheus", ports)))
        yield from (_played(watch, scene, each) for each in chosen)


def _started(stack: ExitStack, site: Site) -> MovedClock:
    """Topics and two workers, of which the second has a small disk and a clock that moves."""
    first, second = site.worker(), site.worker()
    clock = MovedClock(second)
    stack.enter_context(small_disk(second.data_dir))
    command = [sys.executable, "-m", "belfry.cli", "topics", "create"]
    subprocess.run(command, env={**os.environ, **first.settings}, check=True, capture_output=True)
    site.fired_topics(TENANTS)
    for worker in (first, second):
        worker.start()
    for worker in (first, second):
        worker.wait_ready(180)
    return clock


def _played(watch: Watch, scene: Scene, outage: Outage) -> Seen:
    watch.calm()
    print(f"... {outage.name}", file=sys.stderr)  # noqa: T201
    with ExitStack() as planted:
        return watch.outage(
            outage.name,
            outage.signs,
            lambda: planted.enter_context(outage.plant(scene)),
            LIMIT_S,
        )


def table(found: Sequence[Seen]) -> str:
    """The table of the runbooks: seconds by sign, and the words."""
    rows = [
        "| outage | " + " | ".join(Signs._fields) + " |",
        "|---" * (len(Signs._fields) + 1) + "|",
    ]
    for seen in found:
        cells = [_cell(seen, sign) for sign in Signs._fields]
        rows.append(f"| {seen.name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(seen: Seen, sign: str) -> str:
    if sign in seen.told:
        return f"{seen.told[sign].seconds:.0f} s"
    return "NOTHING" if sign in seen.missing else "–"


def words(found: Sequence[Seen]) -> str:
    """What each sign said, in full."""
    lines = []
    for seen in found:
        lines.append(f"\n{seen.name}" + (f"   EARLY: {seen.early}" if seen.early else ""))
        lines += [
            f"  {sign:7}{told.seconds:5.0f} s  {told.text}" for sign, told in seen.told.items()
        ]
        lines += [f"  {sign:7} NOTHING" for sign in seen.missing]
    return "\n".join(lines)


def told(words_given: Sequence[str]) -> bool:
    """Play and print, outage by outage, and the table in the end; whether all told as they should.

    Where belfry does not recover the table has what was seen until then.
    """
    played: list[Seen] = []
    try:
        for seen in run(words_given):
            played.append(seen)
            print(words([seen]), flush=True)  # noqa: T201
    finally:
        print(table(played), flush=True)  # noqa: T201
    return not any(seen.missing or seen.early for seen in played)


if __name__ == "__main__":
    sys.exit(not told(sys.argv[1:]))
