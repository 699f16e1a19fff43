"""Plants: bugs that are put into a copy of the shipped files, to see them caught.

    about = "…"              one sentence
    scenario = "crashes"     in which the bug shows
    seen = ["I1"]            findings that count; one of them has to come
    [[edit]]                 in `file` (below app/) the text `old` becomes `new`

A plant whose text is no longer in the file fails: the code has moved on, and so must the plant.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Final

from tests.simulation.playing import ROOT, finish, start

FOLDER: Final = Path(__file__).parent / "plants"
SEEDS: Final = 150
# They run at the lowest priority in `make test`.
TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class Plant:
    """One file of `plants/`."""

    name: str
    about: str
    scenario: str
    seen: list[str]
    edit: list[dict[str, str]]


def plants() -> list[Plant]:
    """All plants, by name."""
    return [
        Plant(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.toml"))
    ]


def planted(plant: Plant, folder: Path) -> Path:
    """A copy of the shipped files with the bug in it."""
    return edited(plant.name, plant.edit, folder)


def edited(name: str, edits: list[dict[str, str]], folder: Path) -> Path:
    """A copy of the shipped files in which some texts are others."""
    app = folder / "app"
    copytree(ROOT / "app" / "belfry", app / "belfry", ignore=ignore_patterns("__pycache__"))
    (folder / "schemas").symlink_to(ROOT / "schemas")
    for edit in edits:
        path = app / edit["file"]
        text = path.read_text(encoding="utf-8")
        assert text.count(edit["old"]) == 1, f"{name}: {edit['old']!r} in {edit['file']}"
        path.write_text(text.replace(edit["old"], edit["new"]), encoding="utf-8")
    return app


def caught(plant: Plant, folder: Path) -> str:
    """What the simulator prints of the plant; it ends at the first seed that finds something."""
    options = ("--seeds", str(SEEDS), "--only", plant.scenario, "--stop")
    return finish(start(*options, app=planted(plant, folder)), TIMEOUT_S)
