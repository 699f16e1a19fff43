"""Each planted bug is caught: a simulator that finds nothing may be blind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.planting import TIMEOUT_S, Plant, caught, mistakes, plants
from tests.simulation.scenario import scenarios

AT_ONCE: Final = 2


@pytest.fixture(scope="module")
def printed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[str]]]:
    """What the simulator prints of each plant that is to be tested, some of them at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            plant.name: pool.submit(caught, plant, tmp_path_factory.mktemp(plant.name))
            for plant in chosen(request.session.items)
        }


def chosen(items: Sequence[pytest.Item]) -> list[Plant]:
    """The plants of the tests that pytest has selected, in their order."""
    name = test_a_planted_bug_is_caught.__name__
    mine = [each for each in items if isinstance(each, pytest.Function)]
    found = [each.callspec.params["plant"] for each in mine if each.originalname == name]
    return [each for each in found if isinstance(each, Plant)]


@pytest.mark.parametrize("plant", plants(), ids=lambda plant: plant.name)
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_a_planted_bug_is_caught(plant: Plant, printed: dict[str, Future[str]]) -> None:
    assert plant.scenario in {each.name for each in scenarios()}
    output = printed[plant.name].result()
    findings = re.findall(r"^    (I\d+|in time|order) ", output, re.MULTILINE)
    assert set(findings) & set(plant.seen), output
    assert not mistakes(plant, output), output


VERIFIED: Final = [plant for plant in plants() if plant.verified]


@pytest.mark.parametrize("plant", VERIFIED, ids=lambda plant: plant.name)
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_belfry_verify_notices_it_alone(plant: Plant, tmp_path: Path) -> None:
    output = caught(plant, tmp_path, "alone")
    found = set(re.findall(r"^    I50 (?:amid the world, )?([A-Z_]+) ", output, re.MULTILINE))
    assert found & set(plant.verified), output
    assert not mistakes(plant, output), output


FIRES: Final = "    def fire_once(self, row: PendingRow, route: Route, step: Step) -> None:\n"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("row.nothing", "AttributeError"),
        ("nobody(row)", "NameError"),
        ("step.effects(row)", "TypeError"),
        ("step = step if route is None else later; later = step", "UnboundLocalError"),
    ],
)
def test_a_plant_is_refused_that_is_noticed_for_its_own_mistake(
    line: str, kind: str, tmp_path: Path
) -> None:
    edit = {"file": "belfry/engine/fires.py", "old": FIRES, "new": f"{FIRES}        {line}\n"}
    plant = Plant("mistaken", "What it calls is not there.", "crashes", ["I20"], [edit])
    output = caught(plant, tmp_path)
    assert "I20" in output
    (where, *_) = mistakes(plant, output)
    assert where.startswith(f"{kind} in belfry/engine/fires.py:"), output


def test_a_bug_that_is_noticed_for_what_it_does_is_no_mistake(tmp_path: Path) -> None:
    """Another error of a function that it changes is what a bug may come to."""
    edit = {
        "file": "belfry/engine/fires.py",
        "old": FIRES,
        "new": FIRES + "        assert not row\n",
    }
    plant = Plant("failing", "It fires nothing.", "crashes", ["I20"], [edit])
    output = caught(plant, tmp_path)
    assert "AssertionError" in output
    assert not mistakes(plant, output)


def test_only_plants_that_are_selected_are_played(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    mine = [item for item in items if item.name.startswith("test_a_planted_bug_is_caught[")]
    for selected in (mine, mine[::2], mine[:1], []):
        names = [f"test_a_planted_bug_is_caught[{each.name}]" for each in chosen(selected)]
        assert names == [item.name for item in selected]
    assert chosen([item for item in items if item not in mine]) == []
