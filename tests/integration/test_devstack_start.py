"""Starts that do not go as planned end in a sentence, or find a way."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from belfry.devstack import (
    Apicurio,
    DevStackError,
    Kafka,
    PortTakenError,
    StartCancelledError,
    free_port,
)
from belfry.devstack.artifacts import kafka_jars, registry_home
from belfry.devstack.class_cache import class_cache
from belfry.devstack.class_training import train
from belfry.devstack.stack import wait_ready_moving


@pytest.fixture
def taken() -> Iterator[int]:
    """A port somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_taken_after_its_choice_is_told_apart(tmp_path: Path, taken: int) -> None:
    kafka = Kafka(tmp_path, taken).start()
    with pytest.raises(PortTakenError, match=f"kafka ended while starting on port {taken}"):
        kafka.wait_ready()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bundle"), [(Kafka, kafka_jars), (Apicurio, registry_home)])
def test_a_server_takes_its_classes_from_the_cache(
    kind: type[Kafka | Apicurio], bundle: Callable[[], Path], tmp_path: Path
) -> None:
    train([kind])
    server = kind(tmp_path).start()
    try:
        server.wait_ready()
        assert str(class_cache(bundle())) in Path(f"/proc/{server.pid}/maps").read_text("utf-8")
        assert "aot" not in server.log_file.read_text("utf-8").lower()
    finally:
        server.stop()


@pytest.mark.slow
def test_a_cache_that_does_not_fit_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "cache"
    home.mkdir()
    (home / registry_home().name).symlink_to(registry_home())
    monkeypatch.setenv("BELFRY_CACHE_DIR", str(home))
    class_cache(registry_home()).write_bytes(b"of another Java")
    registry = Apicurio(tmp_path / "registry").start()
    try:
        registry.wait_ready()
    finally:
        registry.stop()


@pytest.mark.slow
def test_a_server_moves_on_when_somebody_was_faster(tmp_path: Path, taken: int) -> None:
    said: list[str] = []
    registry = Apicurio(tmp_path, taken).start()
    try:
        wait_ready_moving(registry, said.append)
        assert registry.port > taken
        assert said == [f"Port {taken} was taken meanwhile. registry takes {registry.port}."]
    finally:
        registry.stop()


def test_a_wrong_property_is_shown_from_the_log(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path, properties={"num.network.threads": "many"})
    with pytest.raises(DevStackError, match=r"num\.network\.threads"):
        kafka.start().wait_ready()


def test_a_start_can_be_given_up(tmp_path: Path) -> None:
    registry = Apicurio(tmp_path).start()
    with pytest.raises(StartCancelledError):
        registry.wait_ready(cancelled=lambda: True)
    registry.stop()
    assert not registry.running


def test_time_runs_out_with_the_end_of_the_log(tmp_path: Path) -> None:
    registry = Apicurio(tmp_path).start()
    with pytest.raises(DevStackError, match=r"does not answer on port \d+ after 0 s"):
        registry.wait_ready(timeout_s=0)
    registry.kill()


def test_a_second_start_of_a_running_server_is_refused(tmp_path: Path) -> None:
    registry = Apicurio(tmp_path).start()
    with pytest.raises(DevStackError, match="runs already"):
        registry.start()
    registry.kill()
