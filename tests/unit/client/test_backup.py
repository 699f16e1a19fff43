"""A backup is whole, or it is none."""

from __future__ import annotations

import orjson
import pytest

from belfry.client.backup import BackupCounts, BadBackup, Written, checked, count, read
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy

POLICY = TenantPolicy(
    "demo", spread=4, former_spreads=(1,), http_targets=(HttpTarget("https://x.org/", 5),)
)
SCHEDULE = {"tenant": "demo", "schedule_id": "a", "kind": "AT", "at": "2027-01-01T00:00:00Z"}


def lines(
    *schedules: dict[str, str], policies: tuple[TenantPolicy, ...] = (POLICY,)
) -> list[bytes]:
    told = (orjson.dumps(each) + b"\n" for each in schedules)
    return list(Written({"topic_prefix": "belfry."}, policies, told))


def test_what_was_written_is_read() -> None:
    policy, request = read(lines(SCHEDULE))
    assert policy == POLICY
    assert isinstance(request, dict)
    assert (request["action"], request["schedule_id"]) == ("CREATE", "a")
    assert request["at"] == 1_798_761_600_000


def test_a_policy_says_what_differs_from_the_defaults() -> None:
    told = orjson.loads(lines()[1])["policy"]
    assert told.keys() == {"tenant", "spread", "former_spreads", "http_targets"}


def test_how_much_it_holds() -> None:
    assert checked(lines(SCHEDULE, SCHEDULE)) == ([POLICY], (1, 2))
    assert count(lines(SCHEDULE, SCHEDULE)) == BackupCounts(policies=1, schedules=2)
    assert count(lines(policies=())) == BackupCounts()


@pytest.mark.parametrize(("policies", "schedules"), [((), 0), ((POLICY,), 0), ((POLICY,), 2)])
def test_what_was_written_is_counted(policies: tuple[TenantPolicy, ...], schedules: int) -> None:
    backup = Written({}, policies, [orjson.dumps(SCHEDULE) + b"\n"] * schedules)
    held = count(backup)
    assert held == backup.held == BackupCounts(len(policies), schedules)


def test_a_policy_that_a_restore_would_refuse_is_not_written() -> None:
    wrong = TenantPolicy("demo", spread=-1)
    with pytest.raises(BadBackup, match="Line 3 cannot be restored"):
        lines(SCHEDULE, policies=(POLICY, wrong))


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_one_that_was_cut_off_is_noticed(kept: int) -> None:
    with pytest.raises(BadBackup, match="was cut off"):
        count(lines(SCHEDULE)[:kept])


def test_a_line_that_was_cut_off_is_noticed() -> None:
    whole = lines(SCHEDULE)
    with pytest.raises(BadBackup, match="Line 3 is no JSON"):
        count([*whole[:2], whole[2][:20]])


def test_a_line_that_is_missing_is_noticed() -> None:
    whole = lines(SCHEDULE, SCHEDULE)
    with pytest.raises(BadBackup, match="closing line tells"):
        count([*whole[:2], *whole[3:]])


def test_two_in_one_file_are_none() -> None:
    with pytest.raises(BadBackup, match="Line 5 comes after the end that line 4 tells"):
        count(lines(SCHEDULE) * 2)


@pytest.mark.parametrize("first", [b"", b"{", b"[]", orjson.dumps(SCHEDULE)])
def test_what_is_no_backup_is_told_so(first: bytes) -> None:
    with pytest.raises(BadBackup, match="This is no backup"):
        count([first])


def test_a_later_format_is_not_guessed_at() -> None:
    with pytest.raises(BadBackup, match="format 2"):
        count([b'{"belfry_backup":2}'])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[]", "not an object"),
        (b'{"tenant":"demo"}', "schedule_id is missing"),
        (b'{"tenant":"demo","schedule_id":"a","payment":1}', "no such field"),
        (b'{"policy":{"tenant":"demo","spraed":2}}', "Did you mean spread"),
        (b'{"policy":{"tenant":"demo","spread":-1}}', "spread"),
        (b'{"policy":null}', "cannot be restored"),
    ],
)
def test_a_line_that_cannot_be_restored_is_named(line: bytes, why: str) -> None:
    head, *_, end = lines(SCHEDULE)
    with pytest.raises(BadBackup, match=why) as told:
        count([head, line, end])
    assert "Line 2" in str(told.value)
