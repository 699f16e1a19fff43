"""What must not stand in any file: hosts of package registries, and paths of one machine."""

from __future__ import annotations

import re
from typing import Final

from tests.architecture.tree import ROOT, project_files

REGISTRY_HOST: Final = re.compile(
    r"//[a-z0-9.-]*(?:maven|npmjs|pypi|pythonhosted|crates|golang|debian)[a-z0-9.-]*\.[a-z]+"
)
MACHINE_PATH: Final = re.compile(r"(?<![\w.$})-])/(?:work|root|farm|tmp|home/[a-z]+)/")


def found(text: str) -> list[str]:
    """Every place that names a registry host or a path of this machine."""
    return [match[0] for rule in (REGISTRY_HOST, MACHINE_PATH) for match in rule.finditer(text)]


def test_files_name_no_registry_and_no_machine() -> None:
    named = {
        str(path): named
        for path in project_files()
        if (named := found((ROOT / path).read_bytes().decode("utf-8", "ignore")))
    }
    assert named == {}


def test_the_rules_see_what_they_should() -> None:
    assert found("https:/" + "/files.pythonhosted.org/x") == ["/" + "/files.pythonhosted.org"]
    assert found("cd /" + "root/belfry") == ["/" + "root/"]
    assert not found(
        "docs/" + "work/x, ${HOME}/" + "tmp/x, https://kafka.apache.org/documentation/"
    )
