"""`belfry-client` has what the client imports, asks for what that needs, has no upper bounds."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import grimp
import pytest

from belfry import __version__
from tests.architecture.tree import ROOT

HERE: Final = ROOT / "clients" / "python"
PACKAGE: Final = ROOT / "app" / "belfry"
PROJECT: Final = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))
CONTENT: Final = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
# What users import.
DOORS: Final = ("belfry.client", "belfry.testing")
NAME: Final = re.compile(r"^[A-Za-z0-9_-]+")


def hook() -> Any:
    """The module that chooses the files."""
    spec = spec_from_file_location("hatch_build", HERE / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dotted(path: str) -> str:
    """The module of a file below the package."""
    return ".".join(("belfry", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


@pytest.fixture(scope="module")
def shipped() -> set[str]:
    """Modules of the wheel."""
    return {dotted(each) for each in hook().modules(PACKAGE, CONTENT) if each.endswith(".py")}


@pytest.fixture(scope="module")
def needed() -> set[str]:
    """All that users import by what they import, packages of the outside by their names."""
    graph = grimp.build_graph(
        "belfry", include_external_packages=True, exclude_type_checking_imports=True
    )
    found: set[str] = set()
    for door in DOORS:
        found |= {door} | graph.find_upstream_modules(door)
    for module in [each for each in found if each.startswith("belfry.")]:
        parts = module.split(".")
        found |= {".".join(parts[:length]) for length in range(1, len(parts))}
    return found


def test_the_wheel_has_all_that_the_client_imports(shipped: set[str], needed: set[str]) -> None:
    own = {each for each in needed if each.split(".")[0] == "belfry"}
    assert own - shipped == set()


def test_each_name_of_a_room_or_file_is_there() -> None:
    for room in CONTENT["rooms"]:
        assert (PACKAGE / room / "__init__.py").is_file()
    for name in (*CONTENT["files"], *CONTENT["left-out"]):
        assert (PACKAGE / name).is_file(), name


def test_what_the_client_needs_is_asked_for_and_nothing_else(needed: set[str]) -> None:
    asked = {NAME.match(each)[0].replace("-", "_") for each in PROJECT["project"]["dependencies"]}  # type: ignore[index]
    outside = {each for each in needed if not each.startswith("belfry")}
    # Large payloads are an extra.
    assert outside - set(sys.stdlib_module_names) - {"fsspec"} == asked


def test_a_dependency_has_no_upper_bound() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    for each in (*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)):
        assert re.search(r">=[\d.]+$", each), each


def test_both_distributions_are_of_one_version_and_for_the_same_pythons() -> None:
    other = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert PROJECT["project"]["version"] == other["version"] == __version__
    for field in ("requires-python", "license", "authors"):
        assert PROJECT["project"][field] == other[field]

    def pythons(project: dict[str, Any]) -> list[str]:
        return [each for each in project["classifiers"] if "Python ::" in each]

    assert pythons(PROJECT["project"]) == pythons(other)
    assert len(pythons(other)) == 4
