"""schemathesis asks a real worker everything that the OpenAPI document allows, and more.

Calls are made from the document, alone and in chains (create, look at, change, end).  A status that
the document does not name, an answer that is not of its shape, or any 5xx is a failure.  `make
fuzz-http` does it for longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from belfry.api.auth.keys import digest, new_key
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.worker import Worker
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
KEY = new_key()
EXAMPLES = int(os.environ.get("EXAMPLES", "8"))


@pytest.fixture(scope="module")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    name = f"fuzz-{now_ms()}"
    with Site(kafka, name, tmp_path_factory.mktemp("fuzz")) as site:
        entry = {"name": "fuzz", "sha256": digest(KEY), "tenants": ["*"], "role": "operate"}
        worker = site.worker(HTTP_API_KEYS=json.dumps([entry]))
        yield worker.start().wait_ready()


@pytest.mark.parametrize("phase", ["examples,coverage,fuzzing", "stateful"])
def test_no_request_is_answered_otherwise_than_documented(
    worker: Worker, phase: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(ROOT / "tests" / "acceptance" / "schemathesis.toml")),
            *("run", f"http://127.0.0.1:{worker.http_port}/openapi.json"),
            *("--phases", phase, "--max-examples", str(EXAMPLES), "--seed", "1"),
            *("--header", f"Authorization: Bearer {KEY}"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert done.returncode == 0, _told(done.stdout) + done.stderr[-2000:]
    assert worker.ready, worker.tail()


def _told(output: str) -> str:
    """What schemathesis says, with its long lines cut."""
    return "\n".join(line[:300] for line in output.splitlines())[-20_000:]
