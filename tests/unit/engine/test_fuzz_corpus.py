"""Each input of the fuzzer's corpus gets exactly one verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.inputs import one_input

CORPUS = sorted((Path(__file__).parents[2] / "fuzz" / "corpus").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_one_verdict(path: Path) -> None:
    one_input(path.read_bytes())


def test_the_check_sees_a_record_without_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belfry.engine.intake.Intake.take", lambda *_: None)
    with pytest.raises(AssertionError):
        one_input(b"\0")
