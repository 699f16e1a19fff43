"""Where settings come from: options behind the sub-command, before it, variables, file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.cli.common_options import merged
from belfry.cli.entry import main
from belfry.cli.session import Session
from belfry.cli.shown import Output
from belfry.client.errors import BadProperty


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    # A worker ends the process in order by it, and the tests are no worker.
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Settings of the workers that were started; each ends with code 7."""
    seen: list[Any] = []

    def run_worker(settings: Any) -> int:
        seen.append(settings)
        return 7

    assembly = ModuleType("belfry.assembly")
    assembly.run_worker = run_worker  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "belfry.assembly", assembly)
    return seen


def test_options_behind_the_command_win_and_properties_add_up() -> None:
    before = {"output": Output.JSON, "bootstrap_servers": "a:1", "properties": ["x=1", "y=1"]}
    behind = {"output": Output.JSONL, "properties": ["y=2"]}
    both = merged(before, behind)
    assert both["output"] is Output.JSONL
    assert both["bootstrap_servers"] == "a:1"
    assert both["properties"] == ["x=1", "y=1", "y=2"]


def test_options_win_over_variables_and_these_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("belfry.toml").write_text(
        'bootstrap_servers = "file:1"\nhttp_url = "http://file"\nschema_registry_url = "http://f"\n'
    )
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", "variable:1")
    monkeypatch.setenv("BELFRY_HTTP_URL", "http://variable")
    settings = Session({"bootstrap_servers": "option:1"}).settings
    assert settings.bootstrap_servers == "option:1"
    assert settings.http_url == "http://variable"
    assert settings.schema_registry_url == "http://f"


def test_a_property_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELFRY_KAFKA__SASL_USERNAME", "variable")
    monkeypatch.setenv("BELFRY_KAFKA__SASL_PASSWORD", "secret")
    given = ["sasl.username=option", "ssl.ca.location=a=b"]
    assert Session({"properties": given}).settings.kafka_properties() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "reconnect.backoff.max.ms": 500,
        "sasl.username": "option",
        "sasl.password": "secret",
        "ssl.ca.location": "a=b",
    }


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        ({"properties": ["bootstrap.servers=p:1"]}, "p:1"),
        ({"properties": ["bootstrap.servers=p:1"], "bootstrap_servers": "o:1"}, "o:1"),
    ],
)
def test_servers_may_be_given_as_a_property(given: dict[str, Any], servers: str) -> None:
    assert Session(given).cluster().servers == servers


def test_a_file_that_is_no_toml_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    Path("belfry.toml").write_text("= what\n")
    assert main(["topics", "check"]) == 2
    assert "no TOML" in capsys.readouterr().err


def test_all_wrong_names_and_values_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: list[Any]
) -> None:
    Path("belfry.toml").write_text("fire_chunks = 1\n")
    monkeypatch.setenv("BELFRY_BATCH_RECORD", "5")
    monkeypatch.setenv("BELFRY_KAFKA__SASL_USRNAME", "hunter2")
    monkeypatch.setenv("BELFRY_STANDBYS", "many")
    assert main(["worker", "-X", "sasl.pasword=hunter2"]) == 2
    said = capsys.readouterr().err
    assert started == []
    assert said.count("\n") == 1
    for each in (
        "BELFRY_BATCH_RECORD is no setting of belfry's: did you mean BELFRY_BATCH_RECORDS?",
        "fire_chunks in the settings file is no setting of belfry's: did you mean fire_chunk?",
        "did you mean BELFRY_KAFKA__SASL_USERNAME?",
        "-X sasl.pasword is no property of librdkafka: did you mean sasl.password?",
        "setting standbys (BELFRY_STANDBYS) is 'many'",
    ):
        assert each in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "arguments", [["worker"], ["worker", "--role", "deliver"], ["topics", "check"]]
)
def test_no_process_starts_with_a_name_that_nobody_knows(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    monkeypatch.setenv("BELFRY_NO_SUCH", "1")
    assert main(arguments) == 2
    assert started == []


def test_a_dispatcher_gets_the_settings_of_deliveries_alone(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    monkeypatch.setenv("BELFRY_ROLE", "deliver")
    monkeypatch.setenv("BELFRY_FIRE_CHUNK", "7")
    assert main(["worker", "--http-url", "http://w"]) == 7
    assert type(started[0]).__name__ == "DeliverySettings"
    assert main(["worker", "--role", "all"]) == 7
    assert started[1].fire_chunk == 7


def test_a_file_that_is_named_and_not_there_is_told(
    started: list[Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Else nobody notices that the defaults are in force; a worker tells it in a log line."""
    there = tmp_path / "there.toml"
    there.write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    for file in (str(there), "~/there.toml", "", os.devnull):
        monkeypatch.setenv("BELFRY_CONFIG_FILE", file)
        assert main(["config", "show", "-o", "text"]) == 0
        assert "no such file" not in capsys.readouterr().err
    for file in (str(tmp_path / "their.toml"), str(tmp_path), "~/their.toml"):
        monkeypatch.setenv("BELFRY_CONFIG_FILE", file)
        said = f"BELFRY_CONFIG_FILE is {file!r}, and there is no such file"
        assert main(["config", "show"]) == 0
        assert said in capsys.readouterr().err
        assert main(["worker"]) == 7
        assert capsys.readouterr().err == ""
    assert len(started) == 3


def test_a_misspelt_name_in_a_file_of_the_home_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "b.toml").write_text('bootstrap_server = "b:1"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BELFRY_CONFIG_FILE", "~/b.toml")
    assert main(["config", "show"]) == 2


@pytest.mark.usefixtures("started")
def test_a_stop_is_an_orderly_one_before_a_worker_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the worker itself does about signals is not there yet: its module stands aside.

    The process ends at once: code that is imported may catch an exception.
    """
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    assert main(["worker"]) == 7
    handler = signal.getsignal(signal.SIGTERM)
    assert callable(handler)
    handler(signal.SIGTERM, None)
    assert ended == [0]


def test_a_value_that_kafkas_client_refuses_is_no_answer_of_kafka() -> None:
    """A worker makes clients that no command knows, and librdkafka says what it refuses."""
    error = KafkaError(
        KafkaError._INVALID_ARG, 'Invalid value for configuration property "linger.ms"'
    )
    told = Session({}).told(KafkaException(error))
    assert isinstance(told, BadProperty)
    assert str(told).startswith("Kafka's client refuses its properties: Invalid value for")


def test_the_worker_gets_its_options_as_settings(started: list[Any]) -> None:
    arguments = "worker --data-dir here --http-port 0 --no-create-topics --log-level debug"
    assert main([*arguments.split(), "--bootstrap-servers", "b:1", "-X", "client.id=c"]) == 7
    seen = started
    assert seen[0].data_dir == Path("here")
    assert (seen[0].http_port, seen[0].create_topics, seen[0].log_level) == (0, False, "debug")
    properties = seen[0].kafka_properties()
    assert (properties["bootstrap.servers"], properties["client.id"]) == ("b:1", "c")


@pytest.mark.parametrize("option", ["bootstrap-servers", "http-url", "schema-registry-url"])
def test_an_empty_option_is_refused_and_no_default_is_taken_for_it(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", f"--{option}", ""]) == 2
    assert f"--{option} is empty: give it an address, or leave it out." in capsys.readouterr().err


def test_an_empty_variable_is_refused_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", "")
    assert main(["doctor"]) == 2
    said = "(BELFRY_BOOTSTRAP_SERVERS) is '': it is empty: give host:port, several with commas"
    assert said in capsys.readouterr().err
