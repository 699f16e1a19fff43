"""A question at a terminal: what is no answer is a no, and never a traceback."""

from __future__ import annotations

import io

import pytest
import typer

from belfry.cli.failures import CommandError, WrongUse, ask_to_begin, confirmed


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Somebody who can be asked."""
    stdin = io.StringIO()
    stdin.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", stdin)
    return monkeypatch


def test_ctrl_c_and_ctrl_d_are_a_no(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(question: str, *, err: bool) -> bool:
        raise typer.Abort

    terminal.setattr(typer, "confirm", interrupted)
    assert confirmed("Remove 3 schedules?", "say --yes") is False
    # The next line does not begin behind the question.
    assert capsys.readouterr().err == "\n"
    with pytest.raises(CommandError, match="Nothing was begun"):
        ask_to_begin("Cancel 3 schedules?")


def test_an_end_of_the_input_is_a_no(terminal: pytest.MonkeyPatch) -> None:
    assert confirmed("Remove 3 schedules?", "say --yes") is False


def test_nobody_can_be_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(WrongUse, match="say --yes"):
        confirmed("Remove 3 schedules?", "say --yes")
