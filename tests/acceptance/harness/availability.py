"""Minutes of kills and rolling restarts, and what the canary says of them.

    python -m tests.acceptance.harness.availability MINUTES [WORKERS]

A minute begins with a fault, kills and rolling restarts in turn; the rest of it is calm.  There is
a warm-up without faults, which is not judged.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from belfry.canary.objectives import report
from belfry.canary.rows import slots_until
from belfry.cli.slo import shown
from belfry.client.kafka import Cluster
from belfry.devstack import Kafka
from belfry.tenants.canary import SLO_TOPIC
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.worker import Worker

WARM_S: Final = 20.0
MINUTE_S: Final = 60.0
GRACE_S: Final = 35.0
READY_S: Final = 300.0
SETTINGS: Final = {
    "CANARY_INTERVAL_MS": "1000",
    # Those of a worker that nobody has told otherwise.
    "SESSION_TIMEOUT_MS": "10000",
}


def run(minutes: int, workers: int) -> dict[str, Any]:
    """Start a broker and workers, hurt them, and tell what came out."""
    with TemporaryDirectory() as folder:
        kafka = Kafka(Path(folder) / "kafka").start()
        try:
            kafka.wait_ready(180)
            with Site(kafka.bootstrap_servers, "available", Path(folder), **SETTINGS) as site:
                return {"minutes": minutes, "workers": workers} | _hurt(site, minutes, workers)
        finally:
            kafka.stop()


def _hurt(site: Site, minutes: int, workers: int) -> dict[str, Any]:
    started = [site.worker().start() for _ in range(workers)]
    for worker in started:
        worker.wait_ready(READY_S)
    time.sleep(WARM_S)
    from_ms = now_ms()
    for minute in range(minutes):
        _minute(started, minute)
    until_ms = now_ms()
    time.sleep(GRACE_S)
    return _told(site, from_ms, until_ms)


def _minute(workers: list[Worker], minute: int) -> None:
    begun = time.monotonic()
    if minute % 2:
        for worker in workers:
            worker.stop()
            worker.start().wait_ready(READY_S)
    else:
        victim = workers[minute // 2 % len(workers)]
        victim.kill()
        victim.start().wait_ready(READY_S)
    time.sleep(max(0.0, MINUTE_S - (time.monotonic() - begun)))


def _told(site: Site, from_ms: int, until_ms: int) -> dict[str, Any]:
    cluster = Cluster(site.bootstrap)
    book = slots_until(cluster, site.topic(SLO_TOPIC), from_ms, until_ms)
    found = report(book.rows.values(), from_ms, until_ms)
    assert found is not None, "nothing was measured"
    return shown(found)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:3]]
    told = run(*[*given, *(10, 2)[len(given) :]])
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
