"""`belfry rebalance` on a site, as users run it: a process of its own, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.commands import PROCESS, belfry
from tests.acceptance.harness.site import Site, wait_for
from tests.acceptance.harness.worker import Worker

# A command that waits for workers ends by itself; this is for one that does not.
COMMAND_S = 300.0
# For workers to come back, on a busy machine.
WITHIN_S = 240.0
# Of workers that were just killed, or of a busy machine: not a refusal.
PASSING = ("workers_silent", "Not all is known", "No worker answers", "Give the command again")


def rebalance(
    worker: Worker, *words: str, program: Sequence[str] = PROCESS
) -> subprocess.Popen[str]:
    """Begin `belfry rebalance …`, which asks this worker.

    Whoever kills it takes a process of its own, which is gone then, and not a fork.
    """
    env = {**os.environ, **worker.settings}
    env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{worker.http_port}"
    command = [*program, "rebalance", *words, "--output", "json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)


def ended(worker: Worker, *words: str) -> tuple[int, str, str]:
    """Run the command to its end: its exit code, and what it wrote to output and errors."""
    with rebalance(worker, *words, program=belfry()) as command:
        try:
            out, error = command.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            command.kill()
            raise
    return command.returncode, out, error


def told(worker: Worker, *words: str, within_s: float = WITHIN_S) -> dict[str, Any]:
    """What a command prints once it ends well; what passes by itself is waited for."""

    def ran() -> dict[str, Any] | None:
        code, out, error = ended(worker, *words)
        assert code == 0 or any(each in error for each in PASSING), error
        found: dict[str, Any] | None = json.loads(out) if code == 0 else None
        return found

    found = wait_for(" ".join(words), ran, within_s)
    assert found is not None
    return found


def partitions(site: Site, *names: str) -> list[int]:
    """How many partitions these topics of a belfry have; 0 where there is none."""
    topics = AdminClient({"bootstrap.servers": site.bootstrap}).list_topics(timeout=10).topics
    kinds = (site.topic(name) for name in names)
    return [len(topics[name].partitions) if name in topics else 0 for name in kinds]
