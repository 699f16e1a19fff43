"""Log lines of a command go to stderr: stdout is for results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from belfry.cli import deliveries, doctor, log_lines, recover, replay, topics
from belfry.cli.changelog import judges
from belfry.cli.mirror_sides import told
from belfry.cli.replay_options import OtherWorld
from belfry.settings import CommandSettings


@pytest.fixture(autouse=True)
def _not_configured() -> Iterator[None]:
    """As in a process that has just begun."""
    before, configured = structlog.get_config(), structlog.is_configured()
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if configured:
        structlog.configure(**before)


class Stopped(Exception):
    """Nobody is asked."""


def stopped(*_: object, **__: object) -> Any:
    raise Stopped


def mirrored() -> None:
    with told():
        raise Stopped


SESSION: Any = SimpleNamespace(settings=CommandSettings(), admin=stopped)
COMMANDS: dict[str, Callable[[], object]] = {
    "rows of the changelog": lambda: judges(SESSION),
    "mirror": mirrored,
    "deliveries": lambda: next(deliveries._letters(SESSION, None)),
    "topics check": lambda: topics.check(SESSION),
    "doctor": lambda: doctor.doctor(SESSION),
    "replay": lambda: replay.replay(SESSION, other=OtherWorld()),
    "recover": lambda: recover.recover(SESSION),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_that_log_do_so_on_stderr(
    command: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    # It comes as far as it can without a broker.
    with suppress(Exception):
        command()
    structlog.get_logger("belfry.kafka").warning("records are skipped", records=1)
    out, error = capsys.readouterr()
    assert "records are skipped" in error
    assert out == ""


def test_a_process_that_has_said_where_they_go_keeps_that(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = structlog.testing.LogCapture()
    structlog.configure(processors=[lines])
    log_lines.to_stderr()
    structlog.get_logger().info("said")
    assert [each["event"] for each in lines.entries] == ["said"]
    assert capsys.readouterr().err == ""
