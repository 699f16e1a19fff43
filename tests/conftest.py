"""Fixtures for tests that need the real thing: one broker and one registry per session.

Nothing starts until a test asks for it: ``kafka`` starts the broker alone, ``schema_registry`` the
registry alone, ``stack`` both at the same time, ``s3`` a server of S3.  Tests share them, so each
takes topics, groups and subjects of its own (`unique`), and of S3 folders of its own.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from belfry.devstack import Apicurio, Kafka, Stack
from belfry.devstack.class_training import train
from belfry.devstack.service import JavaService
from tests.plugins.quick_starts import QUICK
from tests.s3 import server as s3_server
from tests.s3.server import S3Server


class LongLived(Kafka):
    """A broker that has time to be compiled well."""

    def _environment(self) -> Mapping[str, str]:
        return {each: os.environ[each] for each in os.environ if (each, os.environ[each]) != QUICK}


def pytest_sessionstart() -> None:
    """Hear Ctrl-C, and let children hear it: a shell's background jobs are started deaf."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def idle_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The session's stack, not started; stopped at the end of the session."""
    home = tmp_path_factory.mktemp("stack")
    stack = Stack(LongLived(home / "kafka"), Apicurio(home / "registry"))
    yield stack
    stack.stop()


@pytest.fixture(scope="session")
def kafka(idle_stack: Stack) -> str:
    """Bootstrap servers of a running broker."""
    _running(idle_stack.kafka)
    return idle_stack.bootstrap_servers


@pytest.fixture(scope="session")
def schema_registry(idle_stack: Stack) -> str:
    """Address of a running schema registry."""
    _running(idle_stack.registry)
    return idle_stack.schema_registry_url


@pytest.fixture(scope="session")
def stack(idle_stack: Stack) -> Stack:
    """A running broker and a running schema registry."""
    _running(idle_stack.registry, idle_stack.kafka)
    return idle_stack


@pytest.fixture(scope="session")
def s3_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The session's server of S3, not started."""
    if why := s3_server.missing():
        pytest.skip(why)
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def s3(s3_home: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A running server of S3; this process, and those that it starts, have its client."""
    s3_server.let_import()
    before = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*before, s3_server.packages()]))
    s3_home.stop()
    return s3_home.start()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes names that no other test has: ``unique("orders")`` gives ``orders-1f0c...``."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:12]}"


def _running(*services: JavaService) -> None:
    train(type(service) for service in services if not service.running)
    for service in services:
        if not service.running:
            service.start()
    for service in services:
        service.wait_ready(180)
