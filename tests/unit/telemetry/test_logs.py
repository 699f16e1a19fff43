"""Log lines: one shape for belfry and its libraries, and nothing that must not be written."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from belfry.settings import Settings
from belfry.telemetry.logs import BLOT, begin, configure


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json(stream: io.StringIO) -> None:
    configure(Settings(log_format="json"), stream)
    structlog.get_logger("belfry.worker").info("Took a partition.", partition=3)
    (line,) = read(stream)
    assert line["event"] == "Took a partition."
    assert line["partition"] == 3
    assert line["level"] == "info"
    assert line["logger"] == "belfry.worker"
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("name", ["faust.app", "mode.services", "aiokafka.conn", "uvicorn.error"])
def test_libraries_speak_through_the_same_handler(name: str, stream: io.StringIO) -> None:
    configure(Settings(log_format="auto"), stream)
    logging.getLogger(name).warning("lost %s", "it", extra={"node": 1})
    (line,) = read(stream)
    assert (line["event"], line["logger"], line["node"]) == ("lost it", name, 1)


def test_levels_below_the_setting_are_not_written(stream: io.StringIO) -> None:
    configure(Settings(log_format="json", log_level="warning"), stream)
    structlog.get_logger("belfry").info("Quiet.")
    logging.getLogger("faust").info("Quiet.")
    assert read(stream) == []


def test_debug_is_for_belfry_only(stream: io.StringIO) -> None:
    configure(Settings(log_format="json", log_level="debug"), stream)
    logging.getLogger("aiokafka").debug("Fetch.")
    structlog.get_logger("belfry").debug("Step.")
    assert [line["event"] for line in read(stream)] == ["Step."]


def test_no_secret_and_no_payload_is_written(stream: io.StringIO) -> None:
    configure(Settings(log_format="json"), stream)
    structlog.get_logger("belfry").info(
        "Connected.",
        payload=b"private",
        properties={"sasl.password": "hunter2", "client.id": "a"},
        values=[b"private"],
    )
    logging.getLogger("faust").warning("x", extra={"api_key": "hunter2"})
    first, second = read(stream)
    assert "private" not in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert first["payload"] == "<7 bytes>"
    assert first["properties"] == {"sasl.password": BLOT, "client.id": "a"}
    assert second["api_key"] == BLOT


def test_an_error_brings_its_traceback(stream: io.StringIO) -> None:
    configure(Settings(log_format="json"), stream)
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger("belfry").exception("Failed.")
    (line,) = read(stream)
    assert "ValueError: broken" in line["exception"]


def test_warnings_become_lines(stream: io.StringIO) -> None:
    configure(Settings(log_format="json"), stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert "old" in read(stream)[0]["event"]


def test_people_get_plain_text(stream: io.StringIO) -> None:
    configure(Settings(log_format="console"), stream)
    structlog.get_logger("belfry").info("Ready.", partitions=4)
    assert "Ready." in stream.getvalue()
    assert "partitions=4" in stream.getvalue()


def test_where_a_process_traces_a_line_about_a_fire_names_its_trace(stream: io.StringIO) -> None:
    configure(Settings(log_format="json", otlp_url="http://127.0.0.1:4318"), stream)
    structlog.get_logger("belfry").warning("late", fire_id="4bf9")
    configure(Settings(log_format="json"), stream)
    structlog.get_logger("belfry").warning("late", fire_id="4bf9")
    assert [line.get("trace_id") for line in read(stream)] == ["4bf9", None]


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_lines_have_colours_where_a_terminal_wants_them(
    variables: dict[str, str], *, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    configure(Settings(), terminal)
    structlog.get_logger("belfry").info("the worker starts")
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_a_settings_file_that_is_not_there_is_told_in_a_line_like_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A stream of JSON lines stays one."""
    monkeypatch.setenv("BELFRY_CONFIG_FILE", str(tmp_path / "none.toml"))
    begin(Settings(log_format="json"))
    told = orjson.loads(capsys.readouterr().err)
    assert told["level"] == "warning"
    assert "none.toml', and there is no such file" in told["reason"]
    (tmp_path / "none.toml").write_text("")
    begin(Settings(log_format="json"))
    assert capsys.readouterr().err == ""
