"""Plays seeds against changed files, each in a process that is forked from one that has begun.

    template: Python, all packages, belfry, and this simulator
        ├─ fork ─► functions that are other ones get their code; plays; ends
        └─ fork ─► forgets belfry and the simulator, imports both from another tree; plays; ends

A plant is caught within a second or two, and a process of its own would take two more to start.
Most plants change functions alone (`swapped`), and those need not even import belfry.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Final

from tests.simulation.swapped import Changed, Unlike, changes, swap

ROOT: Final = Path(__file__).parents[2]
APP: Final = ROOT / "app"
# What the simulator and belfry import, with all that those import.
PACKAGES: Final = (
    *("aiohttp", "aiokafka.record.default_records", "asyncio", "attr", "confluent_kafka.admin"),
    *("confluent_kafka.schema_registry", "cramjam", "cronsim", "cryptography.x509", "fastapi"),
    *("faulthandler", "fastavro", "greenlet", "httptools", "jinja2", "jwt", "orjson"),
    *("prometheus_client", "pydantic_settings", "rich.pretty", "rich.traceback", "structlog"),
    *("tomllib", "uvicorn", "uvloop", "yaml", "zoneinfo", "zstandard"),
)
# And these, with all of belfry that they use.
OURS: Final = (
    *("tests.simulation.__main__", "tests.simulation.run", "tests.simulation.verifying"),
    *("tests.simulation.ports", "tests.simulation.watch"),
)
_STARTS: Final = Lock()
_FORKS: Final = multiprocessing.get_context("forkserver")


def played(
    options: tuple[str, ...],
    told: Path,
    timeout_s: float,
    texts: Mapping[str, str] = MappingProxyType({}),
    tree: Callable[[], Path] | None = None,
) -> str:
    """What the simulator prints; it prints into `told`.

    `texts` are other ones of files below app/.  Where one differs in more than its functions,
    belfry is imported from the tree that `tree` makes.
    """
    app = None if tree is None or _are_functions(texts) else str(tree())
    simulator = _FORKS.Process(target=_play, args=(app, dict(texts), options, str(told)))
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
    asked = {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{APP}{os.pathsep}{ROOT}"}
    before = {name: os.environ.get(name) for name in asked}
    os.environ.update(asked)
    try:
        _FORKS.set_forkserver_preload([*PACKAGES, *OURS])
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _changes(texts: Mapping[str, str]) -> list[Changed]:
    """The functions that are other ones; raises Unlike."""
    found: list[Changed] = []
    for file, text in texts.items():
        path = APP / file
        differing = changes(str(path), path.read_text(encoding="utf-8"), text)
        assert differing, f"{file} does what it did"
        found += differing
    return found


def _are_functions(texts: Mapping[str, str]) -> bool:
    try:
        _changes(texts)
    except Unlike:
        return False
    return True


def _play(app: str | None, texts: Mapping[str, str], options: tuple[str, ...], told: str) -> None:
    """Be a simulator: all that it prints goes to `told`."""
    # Behind it the streams are what they were, on which Python tells what was raised.
    with Path(told).open("w", encoding="utf-8") as out, redirect_stdout(out), redirect_stderr(out):
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        os.chdir(ROOT)
        # As the suite itself does (`tests/plugins/quick_starts.py`).
        sys.dont_write_bytecode = False
        if app is None:
            _become_other(texts)
        else:
            _begin_anew(app)
        sys.argv = ["tests.simulation", *options]
        from tests.simulation.__main__ import main

        code = main()
    sys.exit(code)


def _become_other(texts: Mapping[str, str]) -> None:
    """Be the belfry that the template has imported, with these texts of its files."""
    # Nothing is left to do where the template has them; it passes over what it cannot import.
    for name in OURS:
        import_module(name)
    # Some files are imported where they are needed, which is later.
    for file in texts:
        import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    assert Path(sys.modules["belfry"].__file__ or "").is_relative_to(APP), sys.path
    swap(_changes(texts))
    # Whoever looks through what the template has made would have a copy of all of it.
    gc.freeze()


def _begin_anew(app: str) -> None:
    """Import all of belfry and the simulator from another tree."""
    sys.path[:] = [app, str(ROOT), *(each for each in sys.path if each not in {app, str(ROOT)})]
    for name in [each for each in sys.modules if each.partition(".")[0] in ("belfry", "tests")]:
        del sys.modules[name]
