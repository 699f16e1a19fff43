"""Who is let in: keys, roles, tenants, and what workers tell one another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, BadKeys, digest, new_key
from belfry.api.auth.principal import ANYBODY, Principal, Role, check
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.workers.internal_token import FORWARDED, InternalToken, Target
from belfry.api.workers.parts import ApiDependencies

KEY = new_key()
KEYS = (b"a key that workers share",)
TARGET = Target("GET", "/v1/tenants/a/schedules/b%2Fc", "limit=1", b"")


class Clock:
    """A clock that a test moves."""

    now_ms = 1_800_000_000_000.0

    def __call__(self) -> float:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def entry(key: str = KEY, **more: object) -> dict[str, object]:
    return {"name": "orders", "sha256": digest(key), "tenants": ["orders", "pay.*"], **more}


def test_roles_include_those_before_them() -> None:
    reader = Principal("r", ("*",), Role.READ)
    operator = Principal("o", ("*",), Role.OPERATE)
    assert reader.may(Role.READ)
    assert not reader.may(Role.SCHEDULE)
    assert operator.may(Role.SCHEDULE)


@pytest.mark.parametrize(
    ("tenant", "reached"),
    [("orders", True), ("orders2", False), ("pay.eu", True), ("pay", False), ("", False)],
)
def test_tenants_are_names_or_beginnings(tenant: str, reached: bool) -> None:
    assert Principal("p", ("orders", "pay.*"), Role.READ).reaches(tenant) is reached


def test_what_a_caller_may_not_is_forbidden() -> None:
    caller = Principal("orders", ("orders",), Role.READ)
    check(caller, Role.READ, "orders")
    for role, tenant in ((Role.SCHEDULE, "orders"), (Role.READ, "others")):
        with pytest.raises(Problem) as refused:
            check(caller, role, tenant)
        assert refused.value.status == 403


async def test_without_verifiers_everybody_may_everything() -> None:
    assert await Gate().admit(None) is ANYBODY


@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Basic abc", pytest.param(f"Bearer {new_key()}", id="another key")],
)
async def test_who_shows_nothing_good_is_not_admitted(clock: Clock, shown: str | None) -> None:
    gate = Gate([ApiKeys(json.dumps([entry()]), None, clock)])
    with pytest.raises(Problem) as refused:
        await gate.admit(shown)
    assert refused.value.status == 401
    assert refused.value.headers is not None
    assert refused.value.headers["www-authenticate"].startswith("Bearer")


async def test_a_key_opens_until_it_expires(clock: Clock) -> None:
    keys = ApiKeys(
        json.dumps([entry(role="schedule", expires="2027-01-16T00:00:00Z")]), None, clock
    )
    found = await Gate([keys]).admit(f"Bearer {KEY}")
    assert found == Principal("orders", ("orders", "pay.*"), Role.SCHEDULE)
    clock.now_ms += 86_400_000
    assert await keys.principal(KEY) is None


async def test_keys_in_a_file_are_rotated_without_a_restart(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps([entry()]))
    keys = ApiKeys(None, path, clock)
    newer = new_key()
    for text, opens in (
        (json.dumps([entry(), entry(newer)]), (True, True)),
        ("[{", (True, True)),  # Half written: what was good stays good.
        (json.dumps([entry(newer)]), (False, True)),
    ):
        path.write_text(text)
        clock.now_ms += 2_000
        found = tuple([await keys.principal(each) is not None for each in (KEY, newer)])
        assert found == opens


@pytest.mark.parametrize(
    "text",
    ["", "{}", '[{"name": "x"}]', json.dumps([entry(role="root")]), json.dumps([entry(more=1)])],
)
def test_a_list_that_is_wrong_stops_the_worker(clock: Clock, tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(BadKeys, match=r"keys\.json"):
        ApiKeys(None, path, clock)


def test_no_key_is_kept() -> None:
    assert KEY not in json.dumps(entry())
    assert len(KEY) > 40


@pytest.fixture
def closed(clock: Clock) -> Gate:
    return Gate([ApiKeys(json.dumps([entry()]), None, clock)])


def test_workers_believe_what_is_signed(closed: Gate, clock: Clock) -> None:
    caller = Principal("orders", ("orders",), Role.SCHEDULE)
    written = InternalToken(KEYS, closed, clock).write(TARGET, caller)
    assert InternalToken(KEYS, closed, clock).read(written, TARGET).on(b"") == caller


@pytest.mark.parametrize(
    "spoil",
    [
        lambda target, given: (Target("DELETE", *_rest(target)), given),
        lambda target, given: (Target(target.method, "/v1/tenants/b", target.query), given),
        lambda target, given: (Target(target.method, target.path, "limit=2"), given),
        lambda target, given: (Target(*_head(target), b"x"), given),
        lambda target, given: (target, "00" + given),
        lambda target, given: (target, given[:-1] + ("0" if given[-1] != "0" else "1")),
        lambda target, given: (target, ""),
        lambda target, given: (target, given + "\N{LATIN SMALL LETTER E WITH ACUTE}"),
        lambda target, given: (target, "\N{LATIN SMALL LETTER E WITH ACUTE}." + given),
    ],
)
def test_workers_believe_nothing_else(
    closed: Gate,
    clock: Clock,
    spoil: Callable[[Target, str], tuple[Target, str]],
) -> None:
    internal_token = InternalToken(KEYS, closed, clock)
    target, given = spoil(TARGET, internal_token.write(TARGET, ANYBODY))
    with pytest.raises(Problem):
        internal_token.read(given, target).on(target.body)


@pytest.mark.parametrize(
    "claim", ["", "zz", b"{".hex(), b"7".hex(), b'["a", [], "root", 0, ""]'.hex(), b'["a"]'.hex()]
)
def test_a_claim_that_says_nothing_is_not_believed(closed: Gate, clock: Clock, claim: str) -> None:
    with pytest.raises(Problem) as refused:
        InternalToken(KEYS, closed, clock).read(f"{claim}.{TARGET.signed(KEYS[0], claim)}", TARGET)
    assert refused.value.status == 401


def test_while_a_secret_is_changed_both_are_believed(closed: Gate, clock: Clock) -> None:
    """Workers learn of the next secret, then sign with it, then forget the one before."""
    first, both, turned, last = (b"a",), (b"a", b"b"), (b"b", b"a"), (b"b",)
    for ours, theirs in ((first, both), (both, turned), (turned, last)):
        for signs, reads in ((ours, theirs), (theirs, ours)):
            written = InternalToken(signs, closed, clock).write(TARGET, ANYBODY)
            assert InternalToken(reads, closed, clock).read(written, TARGET).on(b"") == ANYBODY


def test_an_old_signature_and_another_secret_are_worth_nothing(closed: Gate, clock: Clock) -> None:
    internal_token = InternalToken(KEYS, closed, clock)
    written = internal_token.write(TARGET, ANYBODY)
    with pytest.raises(Problem):
        InternalToken((b"another key",), closed, clock).read(written, TARGET)
    with pytest.raises(Problem):
        InternalToken((), closed, clock).read(written, TARGET)
    clock.now_ms += 31_000
    with pytest.raises(Problem):
        internal_token.read(written, TARGET)


@pytest.mark.parametrize(
    ("spoil", "status", "bodies"),
    [
        (lambda given: given, None, 1),
        (lambda given: given[:-1], 401, 0),
        (lambda given: "", 401, 0),
        (lambda given: given + "\N{LATIN SMALL LETTER E WITH ACUTE}", 401, 0),
    ],
)
async def test_only_for_who_is_believed_a_body_is_read(
    closed: Gate, clock: Clock, spoil: Callable[[str], str], status: int | None, bodies: int
) -> None:
    parts, read = ApiDependencies(closed, KEYS, clock), []

    async def receive() -> Message:
        read.append(1)
        return {"type": "http.request", "body": b"a body"}

    target = replace(TARGET, method="POST", body=b"a body")
    given = spoil(parts.internal_token.write(target, ANYBODY))
    found = None
    try:
        await Callers(parts, 1.0).admit(_request(target, given, receive), Role.READ)
    except Problem as problem:
        found = problem.status
    assert (found, len(read)) == (status, bodies)


async def test_a_stale_claim_is_refused_before_its_body_is_read(closed: Gate, clock: Clock) -> None:
    async def receive() -> Message:
        raise AssertionError("nobody asked for it")

    parts = ApiDependencies(closed, KEYS, clock)
    given = parts.internal_token.write(TARGET, ANYBODY)
    clock.now_ms += 31_000
    with pytest.raises(Problem, match="older than 30 s"):
        await Callers(parts, 1.0).admit(_request(TARGET, given, receive), Role.READ)


def _request(target: Target, forwarded: str, receive: Receive) -> Request:
    scope = {
        "type": "http",
        "method": target.method,
        "path": target.path,
        "raw_path": target.path.encode(),
        "query_string": target.query.encode(),
        "headers": [(FORWARDED.encode(), forwarded.encode("latin-1"))],
        "server": ("127.0.0.1", 8700),
        "path_params": {},
    }
    return Request(scope, receive)


def _rest(target: Target) -> tuple[str, str, bytes]:
    return target.path, target.query, target.body


def _head(target: Target) -> tuple[str, str, str]:
    return target.method, target.path, target.query
