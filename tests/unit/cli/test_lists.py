"""Lists have a heading for people, on stderr, and say that they are empty; programs get neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belfry.cli import audit, calendar, deliveries, jobs, tenant
from belfry.cli.entry import main
from belfry.cli.remote import Remote
from belfry.tenants.policy import TenantPolicy

CALENDAR = {
    "calendar": "de",
    "days": ["2026-12-25"],
    "weekend": [],
    "source": None,
    "changed_at": "2026-01-01T00:00:00Z",
    "following": False,
}
JOB = {
    "job": "one",
    "state": "ENDED",
    "action": "CANCEL",
    "filter": {},
    "done": 1,
    "unchanged": 0,
    "refused": 0,
    "refusals": {},
    "examined": 1,
    "begun_at": "2026-01-01T00:00:00Z",
}
EVENT = {
    "at": "2026-01-01T00:00:00.000Z",
    "outcome": "CANCELLED",
    "schedule_id": "a",
    "version": None,
    "due_at": None,
    "attempt": None,
    "code": None,
    "reason": None,
    "source_offset": None,
}
MINUTE = {"minute": "2026-01-01T00:00:00Z", "pending": 3}
KEY = {
    "id": "abc",
    "name": "orders",
    "role": "READ",
    "tenants": ["*"],
    "state": "valid",
    "expires_at": None,
    "last_used_at": None,
    "uses": 0,
    "last_used_from": None,
    "refused": 0,
    "workers": 1,
}
LISTS: dict[str, tuple[list[str], str, Any, str, str]] = {
    # arguments, name in the answer, an element, heading, what is said of none
    "jobs": (["bulk", "list", "demo"], "jobs", JOB, "state ", "demo has no jobs"),
    "calendars": (
        ["calendar", "list", "demo"],
        "calendars",
        CALENDAR,
        "calendar, days off",
        "demo has no calendars",
    ),
    "history": (
        ["schedule", "history", "demo", "a"],
        "events",
        EVENT,
        "at ",
        "Nothing is kept of this range",
    ),
    "counts": (
        ["tenant", "counts", "demo"],
        "counts",
        MINUTE,
        "minute due ",
        "Nothing of demo is due in this range",
    ),
    "keys": (["api-key", "list"], "keys", KEY, "key, name", "The workers have no list of API keys"),
}


def answers(monkeypatch: pytest.MonkeyPatch, name: str, elements: list[Any]) -> None:
    def get(_self: Remote, _path: str, **_query: Any) -> Any:
        return {name: elements, "cursor": None, "silent": [], "workers": 1}

    monkeypatch.setattr(Remote, "get", get)


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_of_a_worker_has_a_heading_or_says_that_it_is_empty(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, name, element, heading, none = LISTS[kind]
    answers(monkeypatch, name, [element])
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err.startswith(heading)
    assert len(out.splitlines()) == 1
    answers(monkeypatch, name, [])
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert (out, err.startswith(none)) == ("", True)
    assert main([*arguments, "-o", "json"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("[]\n", "")


def test_lists_of_topics_say_that_they_are_empty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(*_: Any, **__: Any) -> Iterator[Any]:
        return iter(())

    class Reader:
        listed = nothing

    monkeypatch.setattr(deliveries, "_letters", nothing)
    monkeypatch.setattr(audit, "_reader", lambda _session: Reader())
    for arguments, none in (
        (["deliveries", "list"], "No delivery was given up."),
        (["deliveries", "list", "--open"], "Every delivery has an end."),
        (["audit", "list"], "The audit log has no such change."),
    ):
        assert main(arguments) == 0
        assert capsys.readouterr().err == f"{none}\n"


class Policies:
    """Stands in for the store of policies."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def all(self) -> dict[str, TenantPolicy]:
        return {name: TenantPolicy(name, max_pending=7) for name in self._names}


def test_tenants_without_a_policy_are_listed_where_all_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tenant, "policies_of", lambda _session: Policies("shop"))
    answers(monkeypatch, "tenants", ["demo", "shop"])
    assert main(["tenant", "list"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("shop  max_pending=7\n", f"{tenant.POLICIES}\n")
    assert main(["tenant", "list", "--all"]) == 0
    assert capsys.readouterr().out == "demo  defaults, without a policy\nshop  max_pending=7\n"
    assert main(["tenant", "list", "--all", "-o", "jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == '{"tenant":"demo"}'


def test_where_there_are_no_tenants_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tenant, "policies_of", lambda _session: Policies())
    answers(monkeypatch, "tenants", [])
    assert main(["tenant", "list"]) == 0
    assert capsys.readouterr().err.startswith("No tenant has a policy")
    assert main(["tenant", "list", "--all"]) == 0
    assert capsys.readouterr().err == "There are no tenants yet.\n"


def test_headings_stand_above_their_columns() -> None:
    assert jobs.job_text(JOB).index("CANCEL") == jobs.JOBS.index("action")
    assert calendar.CALENDARS.startswith("calendar")
