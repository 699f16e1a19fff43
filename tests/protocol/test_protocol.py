"""The protocol holds in every order of steps, and every bug that is planted in it is found.

`docs/protocol.md` tells the models as chapters.  The tests below hold it to them: each model, each
planted bug and each name of the code that they speak of is there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT
from tests.protocol.checking import (
    BUGS,
    CHECKS,
    DEEP,
    MODELS,
    Bug,
    checked,
    missing,
    story,
)

PAGE: Final = ROOT / "docs" / "protocol.md"
# `partitions/owner.py` PartitionRunner._begin_term, as models say it.
IN_MODEL: Final = re.compile(r"`([a-z_]+/[a-z_]+\.py)`,? (?:\w+ )??([A-Z]\w+)(?:\.(\w+))?")
# A link to a file, and the names behind it, as the page says it.
IN_PAGE: Final = re.compile(r"\[`?[\w/.]+`?\]\(\.\./app/belfry/([\w/]+\.py)\)((?: `[\w.]+`,?)+)")


@pytest.fixture(scope="module")
def spin() -> None:
    """SPIN and a compiler: where they are missing, nothing is proven, and CI fails."""
    if gone := missing():
        said = f"{' and '.join(gone)} not found: install the packages spin and gcc"
        assert os.environ.get("CI") != "true", said
        pytest.skip(said)


@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize("model", sorted({check.model for check in CHECKS}))
def test_nothing_is_found_in_any_order(model: str, tmp_path: Path) -> None:
    untaken = []
    for check in (check for check in CHECKS if check.model == model):
        verdict = checked(model, check.bounds, tmp_path)
        assert verdict.whole, verdict.output
        assert verdict.errors == 0, verdict.output
        assert verdict.states >= check.least_states, f"{check.name}: is a step missing?"
        untaken.append(verdict.untaken)
    never = set.intersection(*untaken)
    assert not never, f"steps of {model} that no history takes"


@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    verdict = checked(bug.model, (bug.name, *bug.bounds), tmp_path)
    assert (verdict.errors, verdict.found) == (1, bug.found), verdict.output


@pytest.mark.usefixtures("spin")
def test_a_find_is_told_step_by_step(tmp_path: Path) -> None:
    bug = BUGS[0]
    checked(bug.model, (bug.name, *bug.bounds), tmp_path)
    steps = story(bug.model, (bug.name, *bug.bounds), tmp_path).splitlines()
    assert len(steps) > 20
    assert "assert((visible[(fired[_pid]-1)]<=1))" in steps[-1]


@pytest.mark.usefixtures("spin")
def test_a_search_that_was_cut_off_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.protocol.checking.DEPTH", 30)
    verdict = checked("takeover", ("FAULTS=0", "MOVES=0"), tmp_path)
    assert not verdict.whole


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_told_of(bug: Bug) -> None:
    model = (MODELS / f"{bug.model}.pml").read_text(encoding="utf-8")
    kafka = (MODELS / "kafka.pml").read_text(encoding="utf-8")
    assert f"\n   {bug.name} " in model.partition("*/")[0]
    assert re.search(rf"^#(if|elif).*\b{bug.name}\b", model + kafka, re.MULTILINE)
    told = PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^\| `{bug.name}` \|.*\| {bug.found} \|$", told, re.MULTILINE)


def test_every_planted_bug_of_a_model_is_looked_for() -> None:
    listed = {
        (path.stem, name)
        for path in MODELS.glob("*.pml")
        for name in re.findall(r"^   ([A-Z_]{6,}) {2,}\w", path.read_text("utf-8"), re.MULTILINE)
    }
    assert listed == {(bug.model, bug.name) for bug in BUGS}


def test_every_check_is_told_of() -> None:
    page = PAGE.read_text(encoding="utf-8")
    untold = [check.name for check in (*CHECKS, *DEEP) if f"`{check.name}`" not in page]
    assert not untold


def test_what_the_models_name_is_in_the_code() -> None:
    named = [
        (path.name, *names)
        for path in sorted(MODELS.glob("*.pml"))
        for names in IN_MODEL.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(named) >= 8
    for model, module, owner, method in named:
        assert _defines(module, owner), f"{model}: {module} has no {owner}"
        assert not method or _defines(module, method), f"{model}: {module} has no {method}"


def test_what_the_page_names_is_in_the_code() -> None:
    named = IN_PAGE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 12
    for module, names in named:
        for name in re.findall(r"\w+", names):
            assert _defines(module, name), f"docs/protocol.md: {module} has no {name}"


def _defines(module: str, name: str) -> bool:
    text = (ROOT / "app" / "belfry" / module).read_text(encoding="utf-8")
    defined = rf"^ *(async )?(class|def) {name}\b|^{name}(: [^=]+)? = "
    return re.search(defined, text, re.MULTILINE) is not None
