"""The protocol holds in every order of its steps, and each planted bug breaks it.

`docs/protocol.md` explains the models.
"""

from __future__ import annotations

import shutil

import pytest

from tests.protocol.spin import MODELS, Model, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("spin") is None or shutil.which("gcc") is None,
        reason="spin and gcc are not installed",
    ),
]
BUGS = [(model, bug) for model in MODELS for bug in model.bugs]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_order_of_steps_breaks_the_protocol(model: Model) -> None:
    found = check(model)
    assert found.violation == ""
    # Fewer states: a step has become impossible, and what follows it is no longer looked at.
    assert found.states > model.floor


@pytest.mark.parametrize(("model", "bug"), BUGS, ids=[f"{one} {bug}" for one, bug in BUGS])
def test_a_planted_bug_is_caught(model: Model, bug: str) -> None:
    assert "assertion violated" in check(model, bug).violation
