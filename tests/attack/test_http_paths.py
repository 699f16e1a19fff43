"""Paths that try to leave a tenant, and hosts and origins that try to be this machine.

The key is bound to `orders` and may do everything there.  Whatever a path says, nothing of another
tenant is looked at or asked for, and no file is read but those of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.attack.door import OWN, Door
from tests.attack.family import Attack, judge

KEY: Final = "belfry_" + "k" * 43
AUTH: Final = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
UP: Final = ("..", "%2e%2e", "%2E%2E", ".%2e", "%252e%252e", "..%00", "%c0%ae%c0%ae", "..;", "…")
SLASH: Final = ("/", "%2f", "%2F", "%5c", "\\", "//", "%252f", "%c0%af", "/./", "%2f%2f")
METHODS: Final = ("GET", "DELETE", "PUT", "POST")
HOME: Final = "/v1/tenants/orders/schedules"
BODY: Final = b'{"delay_ms": 60000, "schedule_id": "n"}'


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    key = {"name": "k", "sha256": KEY, "tenants": [OWN], "role": "operate"}
    door = Door([key], opened=True)
    yield door
    door.close()


@pytest.fixture(scope="module")
def open_door() -> Iterator[Door]:
    door = Door([], opened=False)
    yield door
    door.close()


def ways_out() -> Iterator[str]:
    """Paths that lead to another tenant, to a file or to nowhere, where somebody resolves them."""
    for up in UP:
        for slash in SLASH:
            yield f"{HOME}/{up}{slash}{up}{slash}others{slash}schedules{slash}a"
            yield f"/v1/tenants/orders{slash}{up}{slash}others/schedules/a"
            yield f"/v1/tenants/{up}{slash}others/schedules/a"
            yield f"/console/{up}{slash}{up}{slash}settings.py"
    yield from ("/V1/tenants/others/schedules/a", "/v1/Tenants/others/schedules/a")
    for odd in ("//v1", "/v1/", "/./v1", "/x/../v1", "/v1;x", "/%76%31", "/v1%2f", "/v1/%2e"):
        yield f"{odd}/tenants/others/schedules/a"
    for name in ("others", "others%00", "%6fthers", "others%20", "OTHERS", "orders%2Cothers"):
        yield f"/v1/tenants/{name}/schedules/a"
        yield f"/v1/tenants/{name}"
        yield f"/v1/tenants/orders/../{name}/counts"
    yield "http://127.0.0.1:8700/v1/tenants/others/schedules/a"
    yield "*"


def paths() -> Iterator[Attack[tuple[str, str]]]:
    """Every way out by every method, past the framework and through it."""
    for number, path in enumerate(sorted(set(ways_out()))):
        encoded = path.encode().decode("latin-1")
        method = METHODS[number % len(METHODS)]
        for query in ("", "?limit=1"):
            for way in ("GET", method) if method != "GET" else ("GET", "DELETE"):
                yield Attack(f"{way} {path}{query}", (way, encoded + query), "kept in")


def test_no_path_leaves_the_tenant(door: Door) -> None:
    def answer(given: tuple[str, str]) -> str:
        found = door(given[0], given[1], AUTH, BODY if given[0] in ("PUT", "POST") else b"")
        reached = door.reached
        # An id may be any text, so some of these ask for a schedule of the own tenant.
        if reached - {OWN} or found.status >= 500 or b"Settings" in found.body:
            return f"{found.status}, reached {reached}"
        if found.status < 400 and reached != {OWN}:
            return f"{found.status} of nobody"
        return "kept in"

    judge(paths(), answer, 1_000)


LOCAL: Final = ("localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]", "[0:0:0:0:0:0:0:1]")
FOREIGN: Final = (
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example#localhost"),
    *("", " ", "localhost evil", "0.0.0.0", "[::]", "10.0.0.1", "169.254.169.254", "[::2]"),
    *("127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:10.0.0.1]", "xn--localhost-"),
    *("localhost\x00", "x" * 400, "localhost.", "[localhost]", "[::1", "::1]", "a[::1]b"),
    *(
        "localhost,evil.example",
        "evil.example,localhost",
        "local host",
        "localh\xf6st",
        "%6cocalhost",
    ),
)
FOREIGN_ORIGINS: Final = (
    *("null", "http://evil.example", "https://127.0.0.1:8700.evil.example", "file://", "", "*"),
    *("http://127.0.0.1", "http://127.0.0.1:8701", "http://localhost:8700", "http://[::1]:8700"),
    *("http://127.0.0.1:8700@evil.example", "http://evil.example/127.0.0.1:8700", "x", "//", "://"),
    *(
        "http://evil.example?127.0.0.1:8700",
        "http://evil.example#127.0.0.1:8700",
        "http://[",
        "data:",
    ),
    *("http://127.0.0.1:8700.", "chrome-extension://abc", "http://127.0.0.1:8700,http://evil"),
)


def hosts() -> Iterator[Attack[list[tuple[str, str]]]]:
    """Names of this machine alone are answered, whatever the port they name."""
    for port in ("", ":8700", ":1"):
        for host in LOCAL:
            yield Attack(f"host {host}{port}", [("host", host + port)], 200)
        for host in FOREIGN:
            yield Attack(f"host {host}{port}", [("host", host + port)], 421)
    yield Attack("userinfo", [("host", "localhost@evil.example")], 421)
    for name in ("x-forwarded-host", "forwarded", "x-host", "x-original-host"):
        yield Attack(name, [("host", "evil.example"), (name, "localhost")], 421)
    own = ("host", "127.0.0.1:8700")
    yield Attack("own origin", [own, ("origin", "http://127.0.0.1:8700")], 200)
    for origin in FOREIGN_ORIGINS:
        yield Attack(f"origin {origin}", [own, ("origin", origin)], 403)


def test_only_names_of_this_machine_are_answered(open_door: Door) -> None:
    judge(hosts(), lambda given: open_door("GET", "/healthz/live", given).status, 100)


def test_every_answer_forbids_the_browser_what_a_page_does_not_need(open_door: Door) -> None:
    for path in ("/", "/healthz/live", "/v1/cluster", "/nothing", "/openapi.json", "/metrics"):
        headers = open_door("GET", path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith(("default-src 'self';", "default-src 'none';")), path
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "no-referrer", path
