"""The wheel works by itself: built from the sdist, installed where nothing else is.

It is installed as the image installs it: what it depends on from the lock of the product, with
hashes, and then the wheel without any search.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

import pytest

from belfry import __version__

ROOT: Final = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

LOOK_INSIDE: Final = """
import sys
from importlib.metadata import version
from importlib.resources import files

import belfry
from belfry.console import ASSETS, TEMPLATES
from belfry.wire.catalogue import names, schema

assert belfry.__file__.startswith(sys.prefix), belfry.__file__
assert version("belfry-scheduler") == belfry.__version__
assert files("belfry").joinpath("py.typed").is_file()
assert (ASSETS / "vendor" / "htmx.min.js").is_file()
assert (TEMPLATES / "overview.html").is_file()
print(*(schema(name)["namespace"] + "." + schema(name)["name"] for name in names()), sep="\\n")
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that sees nothing of this tree; returns what it prints."""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "BELFRY", "VIRTUAL"))
    }
    answer = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_700,
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    return answer.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the tree, so that nothing is found by accident."""
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def wheel(empty: Path) -> Path:
    """The wheel, built from the source distribution, which is built from the tree."""
    run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", empty / "dist", ROOT, cwd=empty
    )
    (built,) = (empty / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(empty: Path, wheel: Path) -> Path:
    """Commands of an environment that holds the wheel and what it depends on."""
    lock = ROOT / "locks" / "product.lock"
    venv.create(empty / "venv", with_pip=True)
    commands = empty / "venv" / "bin"
    install = (commands / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
    run(*install, "--require-hashes", "-r", lock, cwd=empty)
    run(*install, "--no-index", wheel, cwd=empty)
    return commands


def test_the_name_tells_distribution_and_version(wheel: Path) -> None:
    assert wheel.name == f"belfry_scheduler-{__version__}-py3-none-any.whl"


def test_the_command_answers(installed: Path, empty: Path) -> None:
    answer = run(installed / "belfry", "--help", cwd=empty)
    for command in ("dev", "worker", "schedule"):
        assert command in answer


def test_the_schemas_come_along(installed: Path, empty: Path) -> None:
    shown = run(installed / "python", "-I", "-c", LOOK_INSIDE, cwd=empty).split()
    assert set(shown) == {path.stem for path in (ROOT / "schemas").glob("*.avsc")}


def test_dependencies_agree(installed: Path, empty: Path) -> None:
    assert "No broken requirements" in run(installed / "python", "-m", "pip", "check", cwd=empty)
