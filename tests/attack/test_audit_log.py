"""The audit log under attack: nobody hides in it, floods it, or finds a key there.

What is right comes from docs/audit.md: each change and each refusal is noted once, under the name
of the key and never the key, whatever else a request says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from belfry.api.workers.internal_token import FORWARDED
from belfry.audit.refusals import FIRST
from belfry.wire.audit import LONGEST_TEXT, AuditEvent, decode_audit, encode_audit
from tests.attack.door import OTHER, OWN, Door
from tests.attack.family import Attack, judge

KEYS: Final[list[dict[str, Any]]] = [
    {"name": "own", "sha256": "belfry_own-key", "tenants": [OWN], "role": "schedule"},
    {"name": "reads", "sha256": "belfry_reads-key", "tenants": [OWN], "role": "read"},
]
BODY: Final = b'{"schedule_id": "a", "at": "2030-01-01T00:00:00Z"}'
FORGED: Final = (
    *("", ".", "00.", "x.y", "5b5d.00", "7b7d." + "0" * 64, "belfry", "own", "true", "1"),
    *("\xff", "a" * 5_000, "5b226f776e225d.deadbeef"),
)
Request = tuple[str, str, list[tuple[str, str]]]


@pytest.fixture(scope="module", params=[True, False], ids=["keys", "open"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    door = Door(KEYS if request.param else [], opened=True)
    yield door
    door.close()


def ask(door: Door, given: Request) -> list[AuditEvent]:
    """The events of one request, all of whose refusals are new ones."""
    method, path, headers = given
    door(method, path, [*headers, ("content-type", "application/json")], BODY)
    return door.trail.take(1_000, 0, ending=True)


def hiding() -> Iterator[Attack[Request]]:
    """Changes that say of themselves that another worker has noted them, or who asks."""
    path, shown = f"/v1/tenants/{OWN}/schedules", ("authorization", "Bearer belfry_own-key")
    for number, forged in enumerate(FORGED):
        given = [shown, (FORWARDED, forged)]
        yield Attack(f"forged claim {number}", ("POST", path, given), 1)
        yield Attack(f"forged claim {number} alone", ("POST", path, given[1:]), 1)
    for name in ("x-forwarded-for", "forwarded", "x-real-ip", "x-belfry-caller", "belfry-audit"):
        yield Attack(name, ("POST", path, [shown, (name, "198.51.100.7")]), 1)
    for method in ("POST", "PUT", "DELETE"):
        for way in (path + "/a", path + "/%61", path + "/a%2fb", path + "/a%00"):
            yield Attack(f"{method} {way}", (method, way, [shown]), {0, 1})


def test_no_change_hides_from_the_log(door: Door) -> None:
    def answer(given: Request) -> int:
        events = ask(door, given)
        assert {each.source_address for each in events} <= {"127.0.0.1"}
        return len(events)

    attacks = [
        each._replace(right=frozenset(each.right) if isinstance(each.right, set) else each.right)
        for each in hiding()
    ]
    judge(attacks, answer, 40)


def keys_shown() -> Iterator[Attack[Request]]:
    """Ways in which a key gets into a request, and could get into the log."""
    key = "belfry_own-key"
    for tenant in (OWN, OTHER, key):
        base = f"/v1/tenants/{tenant}/schedules"
        for scheme in ("Bearer", "bearer", "Basic", "Token", ""):
            given = [("authorization", f"{scheme} {key}".strip())]
            yield Attack(f"{scheme} for {tenant}", ("POST", base, given), True)
        for header in ("x-api-key", "cookie", "x-auth-token", "proxy-authorization"):
            yield Attack(f"{header} for {tenant}", ("POST", base, [(header, key)]), True)


def test_no_key_gets_into_the_log_from_where_keys_belong(door: Door) -> None:
    def answer(given: Request) -> bool:
        events = ask(door, given)
        # A path is told as it is: who puts a key there has put it into every proxy's log as well.
        return (
            not any("own-key" in str(decode_audit(encode_audit(each))) for each in events)
            or given[1].count("own-key") > 0
        )

    judge(keys_shown(), answer, 25)


def strange() -> Iterator[Attack[Request]]:
    """Names that are no text, control a terminal, or have no end."""
    for number, name in enumerate(
        ("%ff%fe", "%00", "%1b[2J", "%e2%80%ae", "a" * 9_000, "%2e%2e%2f" * 50, "%f0%9f%92%a3", "%")
    ):
        for method in ("GET", "PUT", "DELETE", "POST"):
            yield Attack(f"{method} tenant {number}", (method, f"/v1/tenants/{name}", []), True)
            path = f"/v1/tenants/{OTHER}/schedules/{name}"
            yield Attack(f"{method} schedule {number}", (method, path, []), True)


def test_whatever_a_path_says_can_be_written_and_is_bounded(door: Door) -> None:
    def answer(given: Request) -> bool:
        events = ask(door, given)
        texts = [
            text
            for each in events
            for text in (decode_audit(encode_audit(each)).tenant, each.object)
            if text is not None
        ]
        return all(len(text) <= LONGEST_TEXT for text in texts)

    judge(strange(), answer, 60)


def test_a_flood_of_refusals_is_bounded_and_all_of_it_is_counted() -> None:
    door = Door(KEYS, opened=True)
    floods = 1_000
    for number in range(floods):
        path = f"/v1/tenants/t{number}/schedules/s{number}"
        door("DELETE", path, {"authorization": f"Bearer belfry_guess-{number}"})
    events = door.trail.take(100_000, 0, ending=True)
    door.close()
    assert len(events) == FIRST + 1
    assert sum(each.count for each in events) == floods
