"""Who may ask for what: routes x callers x tenants, by the table of roles in docs/http.md.

The worker behind the port is not connected yet, so whoever is let in is answered 503, or told what
is wrong with the question; nobody else may learn even that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.attack.door import Door
from tests.attack.family import Attack, judge

READ, SCHEDULE, ADMIN, OPERATE = range(4)
T: Final = "/v1/tenants/{tenant}"
S: Final = T + "/schedules/a"
# What each asks for, and the least role that may.
ROUTES = {
    ("GET", "/v1/cluster"): READ,
    ("GET", "/v1/tenants"): READ,
    ("POST", "/v1/preview"): READ,
    ("GET", T): READ,
    ("PUT", T): ADMIN,
    ("DELETE", T): ADMIN,
    ("DELETE", T + "?cancel_pending=true"): ADMIN,
    ("GET", T + "/counts"): READ,
    ("GET", T + "/history"): READ,
    ("GET", T + "/statistics"): READ,
    ("GET", T + "/locks"): READ,
    ("GET", T + "/schedules"): READ,
    ("GET", T + "/schedules?limit=1"): READ,
    ("POST", T + "/schedules"): SCHEDULE,
    ("POST", T + "/schedules?wait=none"): SCHEDULE,
    ("GET", S): READ,
    ("GET", S + "?x=1"): READ,
    ("GET", S + "/history"): READ,
    ("PUT", S): SCHEDULE,
    ("PUT", S + "?wait=none"): SCHEDULE,
    ("DELETE", S): SCHEDULE,
    ("DELETE", S + "?reason=x"): SCHEDULE,
    ("POST", S + "/pause"): SCHEDULE,
    ("POST", S + "/resume"): SCHEDULE,
    ("POST", S + "/trigger"): SCHEDULE,
    ("POST", S + "/dry-run"): SCHEDULE,
    ("POST", S + "/ack?fire_id=" + "0" * 32): SCHEDULE,
}
# Who may look at all of it may ask for its head.
ROUTES |= {("HEAD", path): least for (method, path), least in ROUTES.items() if method == "GET"}
# Keys by their names: role, tenants, and the instant from which they are worth nothing.
KEYS: Final[dict[str, dict[str, Any]]] = {
    "reader": {"role": "read", "tenants": ["orders"]},
    "writer": {"role": "schedule", "tenants": ["orders"]},
    "admin": {"role": "admin", "tenants": ["orders"]},
    "operator": {"role": "operate", "tenants": ["orders"]},
    "family": {"role": "schedule", "tenants": ["pay.*"]},
    "all": {"role": "operate", "tenants": ["*"]},
    "expired": {"role": "operate", "tenants": ["*"], "expires": "2020-01-01T00:00:00Z"},
}
RANKS: Final = {"read": READ, "schedule": SCHEDULE, "admin": ADMIN, "operate": OPERATE}
TENANTS: Final = ("orders", "others", "orders2", "order", "ORDERS", "pay.eu", "pay", "pay.", "a..b")
STRANGERS: Final = (None, "belfry_" + "x" * 43, "")


def key(name: str) -> str:
    """The key of this name, as `belfry api-key` makes them."""
    return "belfry_" + name.ljust(43, "0")


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    entries = [{"name": name, "sha256": key(name), **more} for name, more in KEYS.items()]
    door = Door(entries, opened=False)
    yield door
    door.close()


def bound(caller: str, tenant: str) -> bool:
    """Whether the caller is bound to the tenant, as docs/http.md says."""
    return any(
        tenant.startswith(each[:-1]) if each.endswith("*") else tenant == each
        for each in KEYS[caller]["tenants"]
    )


def right(caller: str, least: int, tenant: str | None) -> str:
    """What the table of roles says."""
    if caller == "expired":
        return "unknown"
    may = RANKS[KEYS[caller]["role"]] >= least and (tenant is None or bound(caller, tenant))
    return "admitted" if may else "forbidden"


def questions() -> Iterator[tuple[str, str, int, str | None]]:
    """Every route with every tenant."""
    for (method, path), least in ROUTES.items():
        for tenant in TENANTS if "{tenant}" in path else (None,):
            yield method, path.format(tenant=tenant), least, tenant


def attacks() -> Iterator[Attack[tuple[str, str, str | None]]]:
    """Every route with every tenant by every caller."""
    for method, path, least, tenant in questions():
        for caller in KEYS:
            name = f"{caller} {method} {path}"
            yield Attack(name, (method, path, key(caller)), right(caller, least, tenant))
        for stranger in STRANGERS:
            yield Attack(f"{stranger} {method} {path}", (method, path, stranger), "unknown")


def schemes() -> Iterator[Attack[tuple[str, str, list[tuple[str, str]]]]]:
    """Ways to show a key; one alone is known."""
    good = key("all")
    shown = {
        "bearer": [("authorization", f"Bearer {good}")],
        "lower case": [("authorization", f"bearer {good}")],
        "upper case": [("authorization", f"BEARER {good}")],
        "basic": [("authorization", f"Basic {good}")],
        "token": [("authorization", f"Token {good}")],
        "bare": [("authorization", good)],
        "colon": [("authorization", f"Bearer: {good}")],
        "twice the word": [("authorization", f"Bearer Bearer {good}")],
        "with a list": [("authorization", f"Bearer x, Bearer {good}")],
        "half": [("authorization", f"Bearer {good[:-1]}")],
        "more": [("authorization", f"Bearer {good}x")],
        "other case": [("authorization", f"Bearer {good.upper()}")],
        "its digest": [("authorization", "Bearer " + "0" * 64)],
        "nul": [("authorization", f"Bearer {good}\0")],
        "cookie": [("cookie", f"authorization=Bearer {good}")],
        "proxy": [("proxy-authorization", f"Bearer {good}")],
        "x": [("x-api-key", good)],
        "forwarded": [("x-forwarded-authorization", f"Bearer {good}")],
        "internal": [("belfry-forwarded", good)],
        "internal empty": [("belfry-forwarded", "")],
        "local": [("x-forwarded-for", "127.0.0.1")],
        "original": [("x-original-url", "/healthz/live")],
    }
    let_in = ("bearer", "lower case", "upper case")
    for method, path in (("GET", S), ("GET", T), ("POST", T + "/schedules"), ("DELETE", S)):
        for name, headers in shown.items():
            target = path.format(tenant="orders")
            # What only workers say to one another is no way to be unknown: it is refused by itself.
            refused = "forbidden" if name.startswith("internal") else "unknown"
            answer = "admitted" if name in let_in else refused
            yield Attack(f"{name} {method} {path}", (method, target, headers), answer)
        query = path.format(tenant="orders") + f"?authorization=Bearer%20{good}&api_key={good}"
        yield Attack(f"query {method} {path}", (method, query, []), "unknown")


def judged(door: Door, method: str, path: str, headers: list[tuple[str, str]]) -> str:
    """Whether a caller was let in."""
    found = door(method, path, [*headers, ("content-type", "application/json")], b"{}")
    if found.status == 401:
        assert found.headers["www-authenticate"].startswith("Bearer")
    return {401: "unknown", 403: "forbidden", 500: "broken"}.get(found.status, "admitted")


def test_each_caller_may_what_its_role_and_its_tenants_say(door: Door) -> None:
    def answer(given: tuple[str, str, str | None]) -> str:
        method, path, shown = given
        headers = [] if shown is None else [("authorization", f"Bearer {shown}")]
        return judged(door, method, path, headers)

    judge(attacks(), answer, 1_500)


def test_a_key_is_shown_in_one_way(door: Door) -> None:
    judge(schemes(), lambda given: judged(door, *given), 90)
