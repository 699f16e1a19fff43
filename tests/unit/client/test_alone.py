"""The client and `belfry.testing` work where nothing of a server is installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from typing import Final

from packaging.requirements import Requirement

from tests.architecture.tree import ROOT

PROGRAM: Final = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from belfry.client import AsyncClient, Client, Subscriber
from belfry.client.schemas import RegisteredSchemas
from belfry.testing import MemoryScheduler
RegisteredSchemas("mock://alone").close()
Client("127.0.0.1:1", schema_registry_url="mock://alone").close()
belfry = MemoryScheduler()
belfry.schedule("demo", "hello", in_="5s", payload="hello")
print(belfry.advance("5s")[0].payload)
"""


def absent() -> set[str]:
    """What the contract of import-linter forbids, so that both mean the same."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (alone,) = (each for each in contracts["contracts"] if each["id"] == "client-alone")
    return set(alone["forbidden_modules"])


def test_no_server_is_needed() -> None:
    assert "faust" in absent()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{absent}", repr(absent()))],
        env={"PYTHONPATH": str(ROOT / "app")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'hello'\n"


def packages_named() -> set[str]:
    """What the distribution of the client asks for, with what that brings along."""
    project = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text("utf-8"))
    found, todo = set[str](), set[str](project["project"]["dependencies"])
    while todo:
        requirement = Requirement(todo.pop())
        if requirement.name not in found:
            found.add(requirement.name)
            given = [{"extra": extra} for extra in (*requirement.extras, "")]
            for line in requires(requirement.name) or ():
                needed = Requirement(line)
                if needed.marker is None or any(map(needed.marker.evaluate, given)):
                    todo.add(str(needed))
    return found


def test_what_its_distribution_asks_for_is_enough() -> None:
    named = {each.lower().replace("_", "-") for each in packages_named()}
    assert {"confluent-kafka", "orjson"} <= named
    others = {
        module
        for module, owners in packages_distributions().items()
        if not {each.lower().replace("_", "-") for each in owners} & named
    } - {"belfry"}
    program = PROGRAM.replace("{absent}", repr(others))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "app")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
