"""The brokers for all scenes of a run: three, or with ``BROKERS=1`` a lone one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.chaos.broker import Brokers, one_node, three_nodes

LONE: Final = os.environ.get("BROKERS") == "1"


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Running nodes and the hop before their second doors."""
    with (one_node if LONE else three_nodes)(tmp_path_factory.mktemp("chaos")) as running:
        yield running


@pytest.fixture(scope="session")
def lone_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """A lone node, for faults that reach into a node's files."""
    with one_node(tmp_path_factory.mktemp("lone")) as running:
        yield running
