"""The program as a whole: help, wrong use, exit codes, and what it does not import."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest
import typer

from belfry.cli.entry import NEW_OBJECTS, main
from belfry.cli.program import program

COMMANDS = [
    [],
    ["dev"],
    ["worker"],
    ["doctor"],
    ["schedule"],
    ["schedule", "create"],
    ["schedule", "cancel"],
    ["schedule", "trigger"],
    ["schedule", "ack"],
    ["schedule", "pause"],
    ["schedule", "resume"],
    ["schedule", "preview"],
    ["events"],
    ["events", "tail"],
    ["tenant", "set"],
    ["tenant", "get"],
    ["tenant", "list"],
    ["tenant", "remove"],
    ["topics", "create"],
    ["topics", "check"],
    ["schema", "register"],
    ["schema", "check"],
    ["mcp"],
]
EVERYWHERE = (
    "--output",
    "--bootstrap-servers",
    "--http-url",
    "--schema-registry-url",
    "-X",
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_a_terminal_and_is_on_stdout(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith(f"Usage: {' '.join(['belfry', *command])} ")
    assert max(len(line) for line in shown.out.splitlines()) <= 80


@pytest.mark.parametrize("group", [[], ["schedule"], ["mirror"], ["rebalance"]], ids=" ".join)
def test_a_list_of_commands_cuts_no_sentence(
    group: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*group, "--help"])
    assert "..." not in capsys.readouterr().out.split("Commands:")[1]


def test_what_a_beginner_needs_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    lines = capsys.readouterr().out.split("Commands:")[1].splitlines()
    shown = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3].strip()]
    assert shown[:4] == ["dev", "worker", "schedule", "events"]


@pytest.mark.parametrize("command", [c for c in COMMANDS if len(c) != 1 or c == ["worker"]])
def test_the_common_options_are_everywhere(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command, "--help"])
    out = capsys.readouterr().out
    assert all(option in out for option in EVERYWHERE)


@pytest.mark.parametrize("command", [[], ["schedule"], ["events"], ["topics"], ["schema"]])
def test_a_group_alone_shows_its_help_and_is_wrong_use(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["schedul"], "No such command 'schedul'. Did you mean 'schedule'"),
        (["schedule", "crate"], "Did you mean 'create'?"),
        (["events", "tial"], "Did you mean 'tail'?"),
        (["schedule", "create", "t", "i", "--payloadd", "x"], "did you mean --payload"),
        (["topics", "check", "-o", "jsn"], "Did you mean 'json'?"),
        (["schedule", "create", "t"], "Missing argument 'ID'"),
        (
            ["schedule", "create", "t", "i"],
            "exactly one of --at, --in, --every, --cron",
        ),
        (["schedule", "create", "t", "i", "--in", "5m", "--every", "1s"], "--in and --every"),
        (["schedule", "create", "t", "i", "--at", "tomorrow"], "2026-12-01T09:00:00Z"),
        (["schedule", "create", "t", "i", "--at", "2026-12-01T09:00:00"], "append Z"),
        (["schedule", "create", "t", "i", "--in", "5x"], "such as 250ms, 30s, 5m or 1h30m"),
        (["schedule", "create", "t", "i", "--every", "0s"], "An interval of 0"),
        (["schedule", "create", "t", "i", "--in", "5m", "--tz", "UTC"], "belongs to --cron"),
        (["schedule", "create", "t", "i", "--every", "5m", "--tz", "UTC"], "to --except-cron"),
        (["schedule", "create", "t", "i", "--in", "5m", "--header", "x"], "NAME=VALUE"),
        (["schedule", "create", "t", "i", "--in", "1s", "--payload-file", "nope"], "No such file"),
        (
            ["schedule", "create", "t", "i", "--in", "1s", "--payload", "a", "--payload-file", "-"],
            "keep one",
        ),
        (["schedule", "preview", "--cron", "0 9 * *"], "give five fields"),
        (["schedule", "preview", "--cron", "@daily", "--tz", "Europe/Pariss"], "Europe/Paris?"),
        (["bulk", "pause", "t", "--per-second", "0"], "--per-second 0 is not allowed: 1 to 10000."),
        (
            ["bulk", "pause", "t", "--per-second", "x"],
            "x is not allowed: a whole number, 1 to 10000.",
        ),
        (["events", "tail", "t", "-n", "0"], "--max 0 is not allowed: 1 or more."),
        (["bench", "--events", "5"], "--events 5 is not allowed: 1000 to 20000000."),
        (["bench", "curve", "--sweep", "payloads"], "Did you mean 'payload'?"),
        (["bench", "curve", "--steps", "1;2"], "--steps '1;2' is not allowed: whole numbers"),
        (["bench", "curve", "--steps", "0", "--sweep", "tenants"], "1 to 10000"),
        (["bench", "fire", "--guarantee", "exactly"], "'EXACTLY_ONCE', 'AT_LEAST_ONCE'"),
        (["rebalance", "call-off", "x"], "GROUP x is not allowed: a whole number, 0 or more."),
        (["plan", "--pending", "x"], "--pending x is not allowed: a number."),
        (["api-key", "new", "x", "--tenant", "**"], "--tenant '**' can be no tenant"),
        (["apply", "no-such-file"], "no-such-file cannot be read: No such file or directory."),
        (["tenant", "set", "-f", "no-such"], "--file no-such cannot be read: No such file"),
        (["schedule", "list", "t", "--state", "NOPE"], "'NOPE' is no state: give one of PENDING"),
        (["schedule", "history", "t", "i", "--outcome", "X"], "'X' is no outcome: give one of ACC"),
        (["topics", "check", "-X", "oops"], "-X 'oops' is no property"),
        (["topics", "check", "-X", "no.such=1"], "-X no.such is no property of librdkafka"),
        (["schema", "check"], "No schema registry is configured"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("belfry: ")
    assert told in shown.err


def test_a_wrong_setting_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BELFRY_CLUSTER__PARTITIONS", "many")
    assert main(["topics", "check"]) == 2
    assert "(BELFRY_CLUSTER__PARTITIONS) is 'many'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["schedule", "create", "de mo", "i", "--in", "5m"], "bad_tenant"),
        (["schedule", "create", "demo", "a\nb", "--in", "5m"], "bad_schedule_id"),
        (["schedule", "create", "demo", "i", "--at", "1700000000"], "instant_in_seconds"),
        (["schedule", "create", "demo", "i", "--at", "9000000000000"], "instant_too_far"),
        (["schedule", "cancel", "demo", "i", "--request-id", "x" * 256], "bad_request_id"),
        (["events", "tail", "de mo"], "bad_tenant"),
    ],
)
def test_what_no_worker_would_accept_is_rejected_without_one(
    arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert f"REJECTED ({code})" in capsys.readouterr().err


def test_a_rejection_is_a_verdict_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "cancel", "de\udcffmo", "i", "-o", "jsonl"]) == 1
    assert '"outcome":"REJECTED"' in capsys.readouterr().out


def test_help_needs_no_client() -> None:
    loaded = (
        "import sys\n"
        "from belfry.cli.entry import main\n"
        "main(['--help'])\n"
        "print([m for m in ('confluent_kafka', 'faust', 'fastavro', 'httpx', 'pydantic_settings',"
        " 'belfry.client', 'belfry.settings') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_a_command_loads_its_own_module_alone() -> None:
    loaded = (
        "import sys\n"
        "from belfry.cli.entry import main\n"
        "main(['worker', '--help'])\n"
        "print([m for m in ('belfry.cli.schedule', 'belfry.devstack', 'rich')"
        " if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_every_command_is_found_by_its_name() -> None:
    everything: Any = typer.main.get_command(program())
    for name in everything.commands:
        alone: Any = typer.main.get_command(program(name))
        assert name in alone.commands
        assert len(alone.commands) <= 2, f"{name} is not in the table, so all modules are loaded"


def test_a_process_seldom_looks_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    gc.unfreeze()
    monkeypatch.setattr(sys, "argv", ["belfry", "--version"])
    try:
        main()
        assert gc.get_threshold() == (NEW_OBJECTS, *before[1:])
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.set_threshold(*before)


def test_commands_in_a_process_of_others_leave_its_garbage_alone() -> None:
    gc.unfreeze()
    before = gc.get_threshold(), gc.get_freeze_count()
    main(["--version"])
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("belfry ")


def test_ctrl_c_ends_a_command_silently_while_it_is_still_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(first: str) -> typer.Typer:
        raise KeyboardInterrupt

    monkeypatch.setattr("belfry.cli.program.program", interrupted)
    assert main(["schedule", "list", "demo"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(first: str) -> typer.Typer:
        app = program(first)

        @app.command("broken")
        def _broken() -> None:
            raise LookupError("a bug")

        return app

    monkeypatch.setattr("belfry.cli.program.program", broken)
    with pytest.raises(LookupError, match="a bug"):
        main(["broken"])


@pytest.mark.parametrize(
    "address",
    ["foo", "localhost:8700", "ftp://x", "http://", "http://h:99999", "http://h:0", "http://h/?a"],
)
def test_an_address_that_is_none_is_told_before_anything_is_asked(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calendar", "list", "demo", "--http-url", address]) == 2
    told = capsys.readouterr().err
    assert repr(address) in told
    assert "such as http://127.0.0.1:8700" in told


def test_what_can_be_measured_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    assert (
        "Missing argument 'WHAT'. Choose one of ingest, fire, lateness" in capsys.readouterr().err
    )
    assert main(["bench", "fire", "--pipelined"]) == 2
    assert "--pipelined is for raw" in capsys.readouterr().err
