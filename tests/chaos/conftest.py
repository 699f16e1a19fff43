"""One broker with two doors for all scenes of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.broker import Brokers, two_doors


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """A running node and its hop."""
    with two_doors(tmp_path_factory.mktemp("chaos")) as running:
        yield running
