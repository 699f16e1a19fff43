"""A user's own waits for a broker that was away leave a client that can be made."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client.errors import BadProperty
from belfry.client.kafka import Cluster

FIRST, LONGEST = "reconnect.backoff.ms", "reconnect.backoff.max.ms"


@pytest.mark.parametrize("given", [{}, {FIRST: 2_000}, {FIRST: "2000"}, {FIRST: 50, LONGEST: 100}])
def test_a_client_takes_a_users_first_wait(given: dict[str, Any]) -> None:
    Cluster("nowhere:1", given).admin()


def test_a_wait_that_is_no_number_is_refused_in_words() -> None:
    with pytest.raises(BadProperty, match=r"reconnect\.backoff\.ms"):
        Cluster("nowhere:1", {FIRST: "soon"}).admin()
