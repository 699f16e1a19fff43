"""The image and the unit of systemd: what they run, as whom, and how they are asked for health."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from typing import Final

from belfry import __version__
from belfry.settings import Settings
from tests.architecture.tree import ROOT

CONTINUED: Final = re.compile(r"\\\n\s*")
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


def instructions() -> list[tuple[str, str]]:
    """The instructions of the image's last stage, in their order."""
    text = CONTINUED.sub("", (ROOT / "compose" / "Dockerfile").read_text("utf-8"))
    lines = [each for each in text.splitlines() if each and not each.startswith("#")]
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines[last:])]


def of(name: str) -> list[str]:
    """What the last stage says for this instruction."""
    return [rest for each, rest in instructions() if each == name]


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
