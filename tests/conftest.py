"""Fixtures for tests that need the real thing: one broker and one registry per session.

Nothing starts until a test asks for it: ``kafka`` starts the broker alone, ``schema_registry`` the
registry alone, ``stack`` both at the same time.  Tests share them, so each takes topics, groups
and subjects of its own (`unique`).
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from belfry.devstack import Apicurio, Kafka, Stack
from belfry.devstack.service import JavaService
from tests.plugins.quick_starts import QUICK


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


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes names that no other test has: ``unique("orders")`` gives ``orders-1f0c...``."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:12]}"


def _running(*services: JavaService) -> None:
    for service in services:
        if not service.running:
            service.start()
    for service in services:
        service.wait_ready(180)
