"""Plays seeds against other trees, each in a process that is forked from one that has begun.

    template: Python, and all packages that are not belfry's
        └─ fork ─► imports belfry from the tree that it is told, and this simulator; plays; ends

A plant is caught within a second or two, and a process of its own would take two more to start. The
template has imported nothing that a plant changes: belfry and the simulator come after the fork.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from pathlib import Path
from threading import Lock
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# What the simulator and belfry import, with all that those import.
PACKAGES: Final = (
    *("aiohttp", "aiokafka.record.default_records", "asyncio", "attr", "confluent_kafka.admin"),
    *("confluent_kafka.schema_registry", "cramjam", "cronsim", "cryptography.x509", "fastapi"),
    *("faulthandler", "fastavro", "greenlet", "httptools", "jinja2", "jwt", "orjson"),
    *("prometheus_client", "pydantic_settings", "rich.pretty", "rich.traceback", "structlog"),
    *("tomllib", "uvicorn", "uvloop", "yaml", "zoneinfo", "zstandard"),
)
_STARTS: Final = Lock()
_FORKS: Final = multiprocessing.get_context("forkserver")


def played(app: Path, options: tuple[str, ...], told: Path, timeout_s: float) -> str:
    """What the simulator prints, where it imports belfry from `app`; it prints into `told`."""
    simulator = _FORKS.Process(target=_play, args=(str(app), options, str(told)))
    # Each start looks after all that were started, so none of those may be closed meanwhile.
    with _STARTS:
        _start_template()
        simulator.start()
    try:
        simulator.join(timeout_s)
    finally:
        simulator.kill()
        simulator.join()
        with _STARTS:
            simulator.close()
    return told.read_text(encoding="utf-8")


def _start_template() -> None:
    """A seed is one run only where Python hashes strings alike, which is settled at its start."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        _FORKS.set_forkserver_preload(list(PACKAGES))
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONHASHSEED"]
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before


def _play(app: str, options: tuple[str, ...], told: str) -> None:
    """Be a simulator: all that it prints goes to `told`."""
    with Path(told).open("w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        sys.stdout = sys.stderr = out
        sys.path[:] = [app, str(ROOT), *(each for each in sys.path if each not in {app, str(ROOT)})]
        os.chdir(ROOT)
        assert "belfry" not in sys.modules
        # As the suite itself does (`tests/plugins/quick_starts.py`).
        sys.dont_write_bytecode = False
        sys.argv = ["tests.simulation", *options]
        from tests.simulation.__main__ import main

        code = main()
    sys.exit(code)
