"""`belfry verify` over a site, as users run it: a process of its own, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.site import Site

# Seconds for one pass: it needs ten of a processor, of which a busy machine gives it a tenth.
PASS_S: Final = 300.0


@dataclass
class VerifyRun:
    """How a run ended, and what it printed as JSON."""

    code: int
    report: dict[str, Any]

    @property
    def kinds(self) -> list[str]:
        """Kinds of the findings, in their order."""
        return [each["kind"] for each in self.report["findings"]]


def verifying(site: Site, *options: str, **settings: str) -> subprocess.Popen[str]:
    """Begin the command on this site's topics."""
    given = {
        "BOOTSTRAP_SERVERS": site.bootstrap,
        "CLUSTER__TOPIC_PREFIX": site.prefix,
        "CLUSTER__APP_ID": site.name,
        **settings,
    }
    return subprocess.Popen(
        [*belfry(), "verify", *options],
        env={**os.environ, **{f"BELFRY_{name}": value for name, value in given.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def verified(site: Site, *options: str, state: Path | None = None, **settings: str) -> VerifyRun:
    """Run the command on this site's topics."""
    remember = [] if state is None else ["--state", str(state)]
    with verifying(site, "-o", "json", *options, *remember, **settings) as run:
        try:
            out, error = run.communicate(timeout=PASS_S)
        except subprocess.TimeoutExpired:
            run.kill()
            raise
    assert run.returncode in (0, 4), error
    assert out, error
    return VerifyRun(run.returncode, json.loads(out))


def assert_verified(site: Site) -> VerifyRun:
    """Nothing is wrong with a site's topics."""
    run = verified(site)
    assert run.code == 0, json.dumps(run.report, indent=1)
    assert run.report["counts"]["checked"], run.report
    return run
