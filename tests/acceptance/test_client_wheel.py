"""`belfry-client` works by itself: built, installed where nothing else is, and an event fires.

What is run is the example of its own page.  What it depends on is installed from its lock, with
hashes.
"""

from __future__ import annotations

import re
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from belfry import __version__
from belfry.devstack import Stack, free_port
from belfry.devstack.stack import Worker
from tests.acceptance.test_wheel import ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROJECT: Final = ROOT / "clients" / "python"
BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Every module is imported, so none may need what only a worker has.
ALL_MODULES: Final = """
import importlib, pkgutil, sys
import belfry
assert belfry.__file__.startswith(sys.prefix), belfry.__file__
names = [each.name for each in pkgutil.walk_packages(belfry.__path__, "belfry.")]
print(len([importlib.import_module(each) for each in names]))
"""
IN_MEMORY: Final = """
from belfry.testing import MemoryScheduler
belfry = MemoryScheduler("2026-12-01T09:00:00Z")
belfry.schedule("demo", "hello", in_="5s", payload="from memory")
print([each.payload for each in belfry.advance("5s")])
"""
OF_WORKERS: Final = ("faust-streaming", "fastapi", "uvicorn", "rocksdict", "pydantic", "typer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the tree."""
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def python(folder: Path) -> Path:
    """The interpreter of an environment that holds the client and what it depends on."""
    build = (
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        folder / "dist",
    )
    run(*build, PROJECT, cwd=folder)
    venv.create(folder / "venv", with_pip=True)
    interpreter = folder / "venv" / "bin" / "python"
    install = (interpreter, "-m", "pip", "install", "--quiet", "--no-deps")
    run(*install, "--require-hashes", "-r", ROOT / "locks" / "client.lock", cwd=folder)
    (wheel,) = (folder / "dist").glob(f"belfry_client-{__version__}-py3-none-any.whl")
    run(*install, "--no-index", wheel, cwd=folder)
    return interpreter


@pytest.fixture(scope="module")
def worker(stack: Stack, folder: Path) -> Iterator[Worker]:
    """A worker with the settings that `belfry dev` gives."""
    running = Worker(stack, folder / "worker", free_port(0))
    try:
        running.wait_ready(120, lambda: False)
        yield running
    finally:
        running.stop()


def test_every_module_finds_what_it_imports(python: Path, folder: Path) -> None:
    assert int(run(python, "-I", "-c", ALL_MODULES, cwd=folder)) > 200
    assert "No broken requirements" in run(python, "-m", "pip", "check", cwd=folder)
    there = run(python, "-m", "pip", "list", "--format=freeze", cwd=folder)
    assert [each for each in OF_WORKERS if f"{each}==" in there] == []


def test_the_scheduler_for_tests_needs_no_kafka(python: Path, folder: Path) -> None:
    assert "from memory" in run(python, "-I", "-c", IN_MEMORY, cwd=folder)


@pytest.mark.usefixtures("worker")
def test_the_example_of_its_page_sees_an_event_fire(
    python: Path, folder: Path, stack: Stack, unique: Callable[[str], str]
) -> None:
    (example,) = BLOCK.findall((PROJECT / "README.md").read_text("utf-8"))
    text = example.replace("localhost:9092", stack.bootstrap_servers)
    # Other pages leave recurring schedules of the tenant demo behind them.
    assert text.count('"demo"') == 2
    text = text.replace('"demo"', f'"{unique("demo")}"')
    assert run(python, "-I", "-c", text, cwd=folder) == "b'hello, belfry'\n"
