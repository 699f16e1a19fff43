"""A port on all addresses is advertised by one that others can call, or the worker says why not."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from belfry.api.server.own_address import is_everywhere, reached_host
from belfry.api.server.server import HttpAddressError
from belfry.api.setup import limits_of
from belfry.process.half_settings import half_settings
from belfry.settings import Settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1"),
        ({"http_host": "10.0.0.1"}, "10.0.0.1"),
        ({"http_host": "belfry-0.belfry"}, "belfry-0.belfry"),
        (
            {"http_host": "0.0.0.0", "http_advertised_url": "https://one.example:8700"},
            "one.example",
        ),
        ({"http_host": "0.0.0.0"}, "127.0.0.1"),
        ({"http_host": "::", "bootstrap_servers": "[::1]:9092"}, "::1"),
        ({"http_host": "::"}, "127.0.0.1"),
        ({"http_host": "0.0.0.0", "bootstrap_servers": "none.invalid:1,127.0.0.1:2"}, "127.0.0.1"),
    ],
)
def test_the_host_that_others_call(given: dict[str, Any], expected: str) -> None:
    found = reached_host(Settings(**given))
    assert found == expected
    assert found in limits_of(Settings(**given), found).hosts


def test_the_machines_own_name_is_the_second_best(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "none.invalid": socket.gaierror("unknown"),
        socket.gethostname(): [(0, 0, 0, "", (each, 0)) for each in ("127.0.1.1", "10.9.8.7")],
    }

    def look_up(host: str, *_: object) -> Any:
        answer = answers[host]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    given = Settings(http_host="0.0.0.0", bootstrap_servers="none.invalid:1")
    assert reached_host(given) == "10.9.8.7"
    answers[socket.gethostname()] = []
    with pytest.raises(HttpAddressError, match=r"set BELFRY_HTTP_ADVERTISED_URL .* such as http"):
        reached_host(given)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", ""])
def test_what_stands_for_all_addresses(host: str) -> None:
    assert is_everywhere(host)


@pytest.mark.parametrize("url", ["http://0.0.0.0:8700", "http://[::]:8700"])
def test_nobody_advertises_all_addresses(url: str) -> None:
    assert "BELFRY_HTTP_ADVERTISED_URL" in half_settings(Settings(http_advertised_url=url))
    assert not half_settings(Settings(http_advertised_url="http://10.0.0.5:8700"))
