"""The image and the unit of systemd: what they run, as whom, and how they are asked for health.

Two things build an image: Docker, by `compose/Dockerfile`, and `make image`, which reads the last
stage of that file.  `make image-check` runs the one that is built here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest

from belfry import __version__
from belfry.settings import Settings
from deploy.image import debian, oci
from deploy.image.build import LOCK
from deploy.image.check import unpacked
from deploy.image.dockerfile import instructions, runtime
from tests.architecture.tree import ROOT

UNIT: Final = ROOT / "deploy" / "systemd" / "belfry.service"
HARDENED: Final = {
    "dynamicuser": "yes",
    "nonewprivileges": "yes",
    "capabilityboundingset": "",
    "protectsystem": "strict",
    "protecthome": "yes",
    "privatetmp": "yes",
    "privatedevices": "yes",
    "restrictnamespaces": "yes",
    "lockpersonality": "yes",
    "systemcallarchitectures": "native",
}


def of(name: str) -> list[str]:
    """What the last stage says for this instruction."""
    return [rest for each, rest in instructions(_dockerfile()) if each == name]


def unit() -> dict[str, str]:
    """The service of the unit; a key that is given twice has its last value."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT, "utf-8")
    return dict(parser["Service"])


def test_the_image_has_the_python_of_the_tests() -> None:
    base = re.search(r"^ARG BASE=python:(\d+)\.(\d+)\.", _dockerfile(), re.MULTILINE)
    assert base is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lowest = project["project"]["requires-python"].removeprefix(">=")
    assert f"{base[1]}.{base[2]}" == lowest
    assert f"python{lowest}" == debian.PYTHON
    assert sys.version_info >= (int(base[1]), int(base[2]))


def test_the_image_is_started_by_its_command_alone() -> None:
    assert [json.loads(each) for each in of("ENTRYPOINT")] == [["belfry"]]
    assert [json.loads(each) for each in of("CMD")] == [["worker"]]


def test_the_image_runs_as_a_number_that_is_not_root() -> None:
    (user,) = of("USER")
    assert all(int(each) >= 10_000 for each in user.split(":"))


def test_the_image_is_asked_for_health_on_the_port_for_it() -> None:
    (check,) = of("HEALTHCHECK")
    command = json.loads(check[check.index("CMD ") + 4 :])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "HEALTHCHECK", "exec")
    assert "/healthz/live" in command[2]
    assert f"'{Settings.model_fields['http_port'].default + 1_000}'" in command[2]


def test_the_image_says_what_it_is() -> None:
    (labels,) = of("LABEL")
    names = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", labels))
    assert names == {"title", "description", "licenses", "version", "revision"}
    assert f"ARG VERSION={__version__}" in _dockerfile()


def test_both_images_are_started_alike() -> None:
    said = runtime(_dockerfile(), {"REVISION": "1234567"})
    assert [said["Entrypoint"], said["Cmd"]] == [["belfry"], ["worker"]]
    assert [said["User"], said["WorkingDir"]] == ["10001:10001", "/var/lib/belfry"]
    assert "PATH=/opt/belfry/bin:/usr/local/sbin" in "\n".join(said["Env"])
    assert said["ExposedPorts"] == {"8700/tcp": {}, "9700/tcp": {}}
    assert said["Healthcheck"]["Test"][:3] == ["CMD", "python", "-c"]
    assert said["Healthcheck"]["Interval"] == 10 * 1_000_000_000
    assert said["Labels"]["org.opencontainers.image.title"] == "belfry"
    assert said["Labels"]["org.opencontainers.image.version"] == __version__
    assert said["Labels"]["org.opencontainers.image.revision"] == "1234567"


def test_both_images_are_made_from_one_lock() -> None:
    assert LOCK == ROOT / "locks" / "product.lock"
    assert f"ARG LOCK={LOCK.relative_to(ROOT)}\n" in _dockerfile()
    assert "--require-hashes -r ${LOCK}\n" in _dockerfile()


def _archive(folder: Path, names: list[str], mtime: int) -> tuple[Path, str]:
    """An image of a tree whose files are made in this order and have this instant."""
    root = folder / "tree"
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}\n")
        os.utime(path, (mtime, mtime))
    (root / "link").symlink_to(names[0] if names[0] == "a/first" else "a/first")
    layer = oci.layer(root, root.rglob("*"), 1_700_000_000, "all")
    described = oci.image([layer], runtime(_dockerfile(), {}), {"os": "linux"}, "2023-11-14")
    archive = folder / "image.tar"
    digest = oci.write(archive, "belfry:1", [layer], described, 1_700_000_000)
    return archive, digest


def test_the_same_files_make_the_same_image(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first, digest = _archive(one, ["a/first", "b"], 1_000_000_000)
    second, other = _archive(two, ["b", "a/first"], 1_111_111_111)
    assert digest == other
    assert first.read_bytes() == second.read_bytes()


def test_an_image_is_unpacked_as_it_was_packed(tmp_path: Path) -> None:
    archive, _ = _archive(tmp_path, ["a/first", "b"], 1_000_000_000)
    image = unpacked(archive, tmp_path)
    assert (image.root / "link").readlink() == Path("a/first")
    assert (image.root / "a/first").read_text() == "this is a/first\n"
    assert image.config["User"] == "10001:10001"
    damaged = archive.read_bytes().replace(b'"10001:10001"', b'"00000:00000"')
    archive.write_bytes(damaged)
    with pytest.raises(AssertionError, match="sha256:"):
        unpacked(archive, tmp_path / "again")


def test_only_what_is_built_goes_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    given = [each for each in lines if each and not each.startswith("#")]
    assert given[0] == "*"
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", _dockerfile(), re.MULTILINE)
    needed = {name for each in copied for name in each.split()}
    assert needed == {each.removeprefix("!") for each in given if each.startswith("!")}


def test_the_unit_is_hardened_and_waits_for_the_hand_over() -> None:
    said = unit()
    assert {name: said.get(name) for name in HARDENED} == HARDENED
    assert (
        int(said["timeoutstopsec"]) * 1000
        >= 10 * Settings.model_fields["hand_over_limit_ms"].default
    )


def test_systemd_understands_the_unit() -> None:
    lines = [each for each in UNIT.read_text("utf-8").splitlines() if each and each[0] != "#"]
    assert all(re.fullmatch(r"\[[A-Z]\w+\]|[A-Z]\w+=.*", each) for each in lines)
    if shutil.which("systemd-analyze") is None:
        return
    told = subprocess.run(
        ["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False
    )
    # The program lies elsewhere on this machine; anything else is a fault.
    found = [each for each in told.stderr.splitlines() if "belfry" in each]
    assert [each for each in found if "is not executable" not in each] == []


def _dockerfile() -> str:
    return (ROOT / "compose" / "Dockerfile").read_text("utf-8")
