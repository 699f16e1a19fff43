"""Plants: bugs that are put into a copy of the shipped files, to see them caught.

    about = "…"              one sentence
    scenario = "crashes"     in which the bug shows
    seen = ["I1"]            findings that count; one of them has to come
    first = 200              the first seed that is played, 0 where it is not said: that of a bug
                             which shows seldom, so that it is soon seen, and of one that shows as
                             something else before
    verified = ["COUNT"]     `belfry verify` has to notice it without the checker, by one of these
    [[edit]]                 in `file` (below app/) the text `old` becomes `new`

A plant whose text is no longer in the file fails: the code has moved on, and so must the plant. One
that calls what is called otherwise by now fails as well (`mistakes`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.simulation.forked import APP, ROOT, played
from tests.simulation.raised import own_errors, texts_before

FOLDER: Final = Path(__file__).parent / "plants"
SEEDS: Final = 150
# They run at the lowest priority in `make test`, beside all tests that start brokers.
TIMEOUT_S: Final = 1_800


@dataclass(frozen=True, slots=True)
class Plant:
    """One file of `plants/`."""

    name: str
    about: str
    scenario: str
    seen: list[str]
    edit: list[dict[str, str]]
    first: int = 0
    verified: list[str] = field(default_factory=list)


def plants() -> list[Plant]:
    """All plants, by name."""
    return [
        Plant(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.toml"))
    ]


def planted(plant: Plant, folder: Path) -> Path:
    """The shipped files with the bug in them."""
    return edited(plant.name, plant.edit, folder)


def edited(name: str, edits: list[dict[str, str]], folder: Path) -> Path:
    """The shipped files, in which some texts are others: new files among links to the old ones.

    Python finds what it has compiled of the old ones, which are linked, too: a copy takes a second,
    links a few ms.
    """
    app, texts = folder / "app", texts_of(name, edits)
    _link(ROOT / "app" / "belfry", app / "belfry", {ROOT / "app" / file for file in texts})
    for file, text in texts.items():
        (app / file).write_text(text, encoding="utf-8")
    (folder / "schemas").symlink_to(ROOT / "schemas")
    return app


def texts_of(name: str, edits: list[dict[str, str]]) -> dict[str, str]:
    """The edited files as they are to be, by their names below app/."""
    texts = dict[str, str]()
    for edit in edits:
        file = edit["file"]
        text = texts.get(file) or (ROOT / "app" / file).read_text(encoding="utf-8")
        assert text.count(edit["old"]) == 1, f"{name}: {edit['old']!r} in {file}"
        texts[file] = text.replace(edit["old"], edit["new"])
    return texts


def _link(there: Path, here: Path, but: set[Path]) -> None:
    """Make a folder of links to what is there, but for these files: folders above them are new."""
    here.mkdir(parents=True)
    compiled, new = there / "__pycache__", {file.stem for file in but if file.parent == there}
    (here / "__pycache__").mkdir()
    for each in compiled.iterdir() if compiled.is_dir() else ():
        # Where Python writes one anew, it puts a file in the place of the link.
        if each.name.partition(".")[0] not in new:
            (here / "__pycache__" / each.name).symlink_to(each)
    for each in there.iterdir():
        if any(file.is_relative_to(each) for file in but):
            if each.is_dir():
                _link(each, here / each.name, but)
        elif each.name != "__pycache__":
            (here / each.name).symlink_to(each)


def caught(plant: Plant, folder: Path, verify: str = "none") -> str:
    """What the simulator prints of the plant; it ends at the first seed that finds something."""
    seeds = ("--seeds", str(SEEDS), "--first", str(plant.first), "--stop")
    options = (*seeds, "--only", plant.scenario, "--verify", verify)
    texts = texts_of(plant.name, plant.edit)
    return played(options, folder / "told", TIMEOUT_S, texts, lambda: planted(plant, folder))


def mistakes(plant: Plant, output: str) -> list[str]:
    """Errors of the plant itself that the simulator tells of: any would be noticed, whatever it is.

    Each is a name, an attribute or a type that a function gets wrong which the plant changes.
    """
    behind = texts_of(plant.name, plant.edit)
    return own_errors(output, texts_before(behind, APP), behind)
