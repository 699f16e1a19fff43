"""Other people's clients: Java's console consumer reads what fires, kcat schedules."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from tests.acceptance.harness.java_tools import tool
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

KCAT = shutil.which("kcat")


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry with one worker."""
    name = f"any-{uuid.uuid4().hex[:8]}"
    with Site(kafka, name, tmp_path_factory.mktemp("any")) as site:
        site.worker().start().wait_ready()
        yield site


def test_javas_console_consumer_sees_a_fired_event(site: Site) -> None:
    headers = [{"name": "mine", "value": b"yes"}]
    site.ask("java", "s", at=now_ms(), payload=b"hello Java", key=b"k", headers=headers)
    site.wait_fired("java", 1)
    command = [
        *tool("kafka-console-consumer.sh", site.home),
        f"--bootstrap-server={site.bootstrap}",
        f"--topic={site.topic('fired.java')}",
        "--from-beginning",
        "--isolation-level=read_committed",
        "--max-messages=1",
        "--timeout-ms=30000",
        "--formatter-property=print.key=true",
        "--formatter-property=print.headers=true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    headers_shown, key, value = done.stdout.splitlines()[-1].split("\t")
    assert (key, value) == ("k", "hello Java")
    assert headers_shown.startswith("mine:yes,belfry-fire-id:")
    assert "belfry-schedule-id:s" in headers_shown


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian package kcat)")
def test_kcat_schedules_with_headers(site: Site) -> None:
    assert KCAT is not None
    command = [KCAT, "-P", "-b", site.bootstrap, "-t", site.topic("schedules"), "-k", "the key"]
    for header in ("belfry-tenant=kcat", "belfry-id=from/a/shell", "belfry-in=300ms", "x=1"):
        command += ["-H", header]
    subprocess.run(command, input=b"hello\n", check=True, timeout=30)
    (fired,) = site.wait_fired("kcat", 1)
    assert (fired.key, fired.value) == (b"the key", b"hello")
    assert fired.headers[0] == ("x", b"1")
    assert fired.header("belfry-schedule-id") == b"from/a/shell"


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian package kcat)")
def test_kcat_reads_what_fires(site: Site) -> None:
    assert KCAT is not None
    site.ask("read", "s", at=now_ms(), payload=b"hello kcat")
    site.wait_fired("read", 1)
    topic = site.topic("fired.read")
    command = [KCAT, "-C", "-e", "-q", "-b", site.bootstrap, "-t", topic, "-f", "%k|%s\n"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=30)
    assert done.stdout == b"s|hello kcat\n"
