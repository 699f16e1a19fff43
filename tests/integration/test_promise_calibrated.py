"""The commands of docs/scale.md, on a broker: constants are measured, and plans made of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import orjson
import pytest

from belfry.capacity.constants import MEASURED
from belfry.cli.entry import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGE: Final = Path(__file__).parents[2] / "docs" / "scale.md"
TYPED: Final = re.findall(r"^\$ belfry (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_page_does_what_it_says(
    kafka: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
    printed = []
    for line in TYPED:
        command, _, target = line.replace(
            "--events 400000", "--events 2000 --runs 1 --tenants 4"
        ).partition(">")
        capsys.readouterr()
        assert main(command.split()) == 0
        printed.append(capsys.readouterr().out)
        if target:
            Path(target.strip()).write_text(printed[-1], "utf-8")
    shipped, constants, own = printed
    measured = orjson.loads(constants)["constants"]
    assert set(measured) == {name for name in MEASURED if not name.startswith("broker_")}
    assert "partitions" in shipped
    assert "brokers" in shipped
    # The broker's are the shipped ones, and the plan says of each when it was measured.
    assert own.count("Constants, measured") == 2
