"""What the pages tell people to type works: every command is run, or has a reason not to be.

Each page is run from top to bottom against a stack and a worker, in a folder of its own, as a
reader would: ``console`` blocks line by line, ``sh`` and ``python`` blocks as they stand.  Only the
addresses are replaced, and `belfry` is this tree's.  What the commands are for (the event fires) is
then looked up in Kafka.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from belfry.client import Client, Events
from belfry.devstack import Stack
from belfry.devstack.ports import free_port
from belfry.devstack.stack import Worker
from tests.acceptance.harness.commands import put_on_path
from tests.architecture.tree import ROOT, markdown

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BLOCK: Final = re.compile(r"^```(console|sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN: Final = {
    "make run": "the stack and the worker of this test stand for it",
    "make test": "it is what runs this test",
    "source .venv/bin/activate": "the environment of this test is already the right one",
    "belfry calendar import": "tests/unit/cli/test_calendar.py",
    "belfry dev": "tests/acceptance/test_dev_command.py",
    "export BELFRY_BOOTSTRAP_SERVERS=kafka-1": "a cluster that this machine has not got",
    "belfry worker --data-dir /var/lib": "the same; the worker of this test stands for it",
}
# Pages that are run, with what has to be seen: in the output, and as events of tenant `demo`.
SEEN: Final = {
    "README.md": (
        ["ACCEPTED demo/hello", "hello, belfry", "CANCELLED demo/order/4711", "hello from"],
        {"hello", "from-kcat", "from-avro", "from-python"},
    ),
    "docs/quickstart.md": (
        ["UPDATED demo/reminder", "CANCELLED demo/reminder", "ACCEPTED 1", "'belfry-fire-id'"],
        {"hello", "order/4711", "price/0", "price/1", "price/2"},
    ),
    "docs/rejections.md": ([], set[str]()),
    "docs/http.md": (
        [
            *('"outcome":"ACCEPTED"', '"outcome":"UPDATED"', '"outcome":"PAUSED"', 'etag: "'),
            *('"outcome":"RESUMED"', '"outcome":"TRIGGERED"', '"outcome":"CANCELLED"'),
            *('"fire_id":', '{"status":422,', '{"status":201,', '"schedule_id":"bulk/1"'),
            # Other pages set policies as well.
            *('"max_pending":100000', '"words":', '{"tenants":[', '"tenant":"shop"'),
            *('"minute":', '"events":', '"success_rate":', '"workers":', '"ready":true', "sha256"),
            '"in_use":false',
            *("demo/order/4711 was cancelled", "asked at belfry.schedules/", "in 1 s"),
        ],
        {"hello", "order/4711"},
    ),
    "docs/bulk.md": (
        [
            *("2 schedules of demo match: season/1, season/2", "2 done, 0 unchanged, 0 refused"),
            *("1 done, 0 unchanged, 0 refused", "DONE    CANCEL  winter", "1 match"),
        ],
        {"season/1", "season/2"},
    ),
    "docs/backfill.md": (
        [
            "36 occurrences of 1 schedule, from 2026-01-01T06:00:00.000Z",
            *(
                "1 done, 0 unchanged, 0 refused, 36 fired",
                "1 done, 0 unchanged, 0 refused, 2 fired",
            ),
            *("DONE    BACKFILL new-year", "18 occurrences"),
        ],
        {"sales/hourly"},
    ),
    "docs/redrive.md": (
        [
            "0 requests would be sent",
            "0 to send",
            "schedules would be sent",
            "0 were sent before",
            '"kinds":',
        ],
        {"again/1"},
    ),
    "docs/cli.md": (["ACCEPTED demo/hello"], {"hello"}),
    "docs/webhooks.md": ([], set[str]()),
    "docs/tenants.md": ([], set[str]()),
    # Last, for some of its schedules go on for as long as the worker runs.
    "docs/schedules.md": (
        [
            *("At 02:30, Europe/Paris", '"words": "Every 1m30s, 3 times"', "ACCEPTED demo/gauge"),
            *("PAUSED demo/report", "RESUMED demo/report", "TRIGGERED demo/report"),
            *("UPDATED demo/report", "CANCELLED demo/report", "UPDATED jobs/first"),
        ],
        {"soon", "tick", "sweep", "report"},
    ),
}
# Pages whose commands are processes of their own, as readers start them; those of others are forks
# (`harness/commands.py`), which differ in nothing but what they have imported before.
BY_ITSELF: Final = ("README.md", "docs/quickstart.md", "docs/cli.md")
# Fragments that show a shape; what they name is tested where it lives.
SHAPES: Final = {
    "docs/dev-stack.md": "tests/integration/test_devstack_kafka.py",
    "clients/python/README.md": "tests/acceptance/test_client_wheel.py",
}
# Commands that stop or need a world of their own: what runs each of them.
ELSEWHERE: Final = {
    "docs/apply.md": "tests/integration/test_promise_declared.py",
    "docs/audit.md": "tests/integration/test_promise_audit.py",
    "docs/doctor.md": "tests/acceptance/test_doctor_faults.py",
    "docs/first-event.md": "tests/acceptance/test_clients.py",
    "docs/mcp.md": "tests/integration/test_promise_mcp.py",
    "docs/metering.md": "tests/integration/test_promise_metering.py",
    "docs/mirror.md": "tests/integration/test_promise_mirror.py",
    "docs/payloads.md": "tests/integration/test_promise_swept_payloads.py",
    "docs/day-files.md": "tests/integration/test_promise_day_files.py",
    "docs/rebalance.md": "tests/integration/test_promise_rebalance_plan.py",
    "docs/recovery.md": "tests/integration/test_promise_identity.py",
    "docs/replay.md": "tests/integration/test_promise_replayed.py",
    "docs/runbooks/README.md": "tests/outages/test_outages.py",
    "docs/scale.md": "tests/integration/test_promise_calibrated.py",
    "docs/shredding.md": "tests/integration/test_promise_shredded.py",
    "docs/slo.md": "tests/integration/test_promise_canary.py",
    "docs/sql.md": "tests/unit/cli/test_sql.py",
    "docs/tracing.md": "tests/integration/test_promise_tracing.py",
    "docs/verify.md": "tests/integration/test_promise_verified.py",
    "docs/workers.md": "tests/integration/test_promise_tenant_rights.py",
}


@dataclass(frozen=True)
class Step:
    """One thing to type, and the program that reads it."""

    language: str
    text: str

    @property
    def kept_back(self) -> str | None:
        """Why it is not run, or None."""
        starts = [why for start, why in NOT_RUN.items() if self.text.startswith(start)]
        return starts[0] if starts else None


def steps(page: Path) -> Iterator[Step]:
    """What a page tells people to type, in its order."""
    for language, block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if language == "python":
            yield Step(language, block)
            continue
        for line in block.replace("\\\n", " ").splitlines():
            # In a console block what has no prompt is output.
            if line.startswith("$ ") or (language == "sh" and line.strip()):
                yield Step(language, line.removeprefix("$ "))


@dataclass(frozen=True)
class Shell:
    """A place where a reader types."""

    folder: Path
    stack: Stack
    worker: Worker
    timeout_s: float = 60

    def addressed(self, text: str) -> str:
        """A text of a page with the addresses of this stack and worker."""
        text = text.replace("localhost:9092", self.stack.bootstrap_servers)
        text = text.replace("http://localhost:8081/apis/ccompat/v7", self.stack.schema_registry_url)
        return text.replace("http://localhost:8700", self.worker.http_url)

    def run(self, step: Step) -> str:
        """Type it; returns what it printed."""
        text = self.addressed(step.text)
        program = [sys.executable] if step.language == "python" else ["bash", "-o", "pipefail"]
        answer = subprocess.run(
            [*program, "-c", text],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
            check=False,
        )
        assert answer.returncode == 0, f"{step.text}\n{answer.stdout}{answer.stderr}"
        return answer.stdout

    def _environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if "BELFRY" not in name}
        return {
            **clean,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "app"),
            "BELFRY_BOOTSTRAP_SERVERS": self.stack.bootstrap_servers,
            "BELFRY_HTTP_URL": self.worker.http_url,
        }


@contextmanager
def ready_worker(stack: Stack, folder: Path) -> Iterator[Worker]:
    """A worker with the settings that `belfry dev` and `make run` give; it is ready."""
    running = Worker(stack, folder, free_port(0))
    try:
        running.wait_ready(120, lambda: False)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def worker(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker for the commands of all pages."""
    with ready_worker(stack, tmp_path_factory.mktemp("worker")) as running:
        yield running


@pytest.fixture
def shell(stack: Stack, worker: Worker, tmp_path: Path) -> Shell:
    """A shell in an empty folder, in whose `bin` its `belfry` will be."""
    return Shell(tmp_path, stack, worker)


@pytest.mark.parametrize("page", SEEN)
def test_what_the_page_says_works(page: str, shell: Shell) -> None:
    texts, schedules = SEEN[page]
    put_on_path(shell.folder / "bin", forked=page not in BY_ITSELF)
    has_kcat = shutil.which("kcat") is not None
    typed = [step for step in steps(Path(page)) if step.kept_back is None]
    done = [step for step in typed if has_kcat or "kcat" not in step.text]
    with (
        Client(shell.stack.bootstrap_servers) as client,
        client.events("demo") as events,
    ):
        printed = "".join(shell.run(step) for step in done)
        if len(done) < len(typed):
            missing = len(typed) - len(done)
            pytest.skip(f"kcat is not installed: {missing} commands of {page} were not run")
        assert fired(events, schedules, timeout_s=20) == schedules
    for text in texts:
        assert text in printed


def fired(events: Events, wanted: set[str], timeout_s: float) -> set[str]:
    """Which of these schedules have fired, once all have or time is up."""
    found: set[str] = set()
    deadline = monotonic() + timeout_s
    while not wanted <= found and monotonic() < deadline:
        event = events.next_within(0.5)
        if event is not None and event.schedule_id is not None:
            found.add(event.schedule_id)
    return found & wanted


def test_every_page_with_commands_is_run() -> None:
    # Those under docs/how-to/ have a test of their own, test_how_to_pages.py.
    pages = [page for page in markdown() if page.parent.name != "how-to"]
    with_steps = {str(page) for page in pages if any(steps(page))}
    assert with_steps == SEEN.keys() | SHAPES.keys() | ELSEWHERE.keys()
    for page in SHAPES:
        assert {step.language for step in steps(Path(page))} == {"python"}
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
    for test in SHAPES.values():
        assert (ROOT / test).is_file()


def test_every_reason_is_needed() -> None:
    typed = [step for page in SEEN for step in steps(Path(page))]
    for start in NOT_RUN:
        assert any(step.text.startswith(start) for step in typed), start
