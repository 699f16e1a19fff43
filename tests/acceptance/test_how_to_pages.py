"""The pages under ``docs/how-to/`` work as they stand: every block is run, from top to bottom.

The page on Kafka Connect is run by ``test_connect.py``, where a Connect worker is, those on the
clients for other languages by ``test_clients.py``, and what many workers do in turn by a promise.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from belfry.devstack import Stack, free_port
from belfry.devstack.stack import Worker
from tests.acceptance.harness import java_tools
from tests.acceptance.harness.commands import put_on_path
from tests.acceptance.test_readme_commands import Shell, Step, steps
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER: Final = ROOT / "docs" / "how-to"
NOT_RUN: Final = {
    "belfry restore": "tests/integration/test_promise_backup.py",
    "BELFRY_CLUSTER__": "the same",
    "export BELFRY_REGISTRY__": "tests/unit/registry/test_credentials.py shows that they arrive",
}
# What each page has to print, apart from running without an error.
PAGES: Final = {
    "python-client.md": [
        "ACCEPTED 1",
        "CONFLICT",
        "CANCELLED",
        "PENDING",
        "{'ACCEPTED'}",
        "closing order/2 b'not paid'",
        "about an order order.paid",
        "something else price/1",
        "handled 3",
        "attempt 2 b'card 4711'",
        "0 True",
        "vault/k1 20 b'4711'",
    ],
    "retries.md": [
        "card 4711: retry-attempt=1,",
        "card 4711: retry-attempt=2,",
        "tried again card 4712 b'2'",
        "created  belfry.dead-letters.charges",
        "retry-attempt=3,belfry-error-code=retries_exhausted",
        "1 requests would be sent (retries_exhausted: 1)",
        "1 requests were sent (retries_exhausted: 1)",
    ],
    "recipes.md": [],
    "migrate.md": ["ACCEPTED demo/quartz/report", "CANCELLED demo/beat/reminder"],
    "backup.md": [" policies", '{"end":{"policies":'],
    "registry.md": ["belfry.schedules-value"],
    "upgrade.md": [" policies"],
    "troubleshoot.md": ["demo/order/4711 waits"],
    "kubernetes.md": ["--resource-pattern-type prefixed", "KafkaUser", '"name":"platform"'],
    "other-clients.md": [
        "1: from kcat",
        "belfry-schedule-id:from/java",
        "b'from confluent-kafka'",
        "b'4' b'from aiokafka' b'from/aiokafka'",
        "faust got b'from kcat' b'from/kcat'",
    ],
    "tenants.md": ["payments  delivery=ENVELOPE", "removed  payments", "KafkaUser"],
    "webhooks.md": ["verified order/4711 {'paid': False}", '"state":"broken"'],
}
ELSEWHERE: Final = {
    "connect.md": "tests/acceptance/test_connect.py",
    "workers.md": "tests/integration/test_promise_signed_changelog.py",
    **dict.fromkeys(
        ("java.md", "spring.md", "go.md", "typescript.md"), "tests/acceptance/test_clients.py"
    ),
}


@pytest.fixture(scope="module")
def worker(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker with the settings that `belfry dev` gives, and the secret of webhooks.md."""
    page = (FOLDER / "webhooks.md").read_text(encoding="utf-8")
    secrets = re.search(r"BELFRY_WEBHOOK_SECRETS='(.*)'", page)
    assert secrets is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BELFRY_WEBHOOK_SECRETS", secrets[1])
        running = Worker(stack, tmp_path_factory.mktemp("worker"), free_port(0))
    try:
        running.wait_ready(120, lambda: False)
        yield running
    finally:
        running.stop()


@pytest.fixture
def shell(stack: Stack, worker: Worker, tmp_path: Path) -> Shell:
    """A shell whose `belfry` is this tree's, with Kafka's tools on its path."""
    programs = tmp_path / "bin"
    put_on_path(programs)
    java_tools.install(programs)
    return Shell(tmp_path, stack, worker)


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_says_works(page: str, shell: Shell) -> None:
    typed = [step for step in steps(Path("docs/how-to", page)) if not kept_back(step)]
    assert typed
    if shutil.which("kcat") is None and any("kcat" in step.text for step in typed):
        pytest.skip(f"kcat is not installed, and {page} needs it (Debian package kcat)")
    url = shell.worker.http_url
    printed = "".join(
        shell.run(Step(step.language, step.text.replace("http://localhost:8700", url)))
        for step in typed
    )
    for text in PAGES[page]:
        assert text in printed, printed


def kept_back(step: Step) -> bool:
    """Whether a step is not run, for a reason."""
    return any(step.text.startswith(start) for start in NOT_RUN)


def test_every_page_is_run_and_listed() -> None:
    pages = {path.name for path in FOLDER.glob("*.md")}
    assert pages == PAGES.keys() | ELSEWHERE.keys()
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [page for page in sorted(pages) if f"(how-to/{page})" not in index] == []


def test_every_reason_is_needed() -> None:
    typed = [step for page in PAGES for step in steps(Path("docs/how-to", page))]
    for start in NOT_RUN:
        assert any(step.text.startswith(start) for step in typed), start
