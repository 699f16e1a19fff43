"""The breaker of a host."""

from __future__ import annotations

from belfry.delivery.hosts import FAILURES, FORGET_MS, LONGEST_PAUSE_MS, Host, Hosts


def fail(host: Host, now_ms: int, times: int = 1) -> None:
    for _ in range(times):
        host.begin(now_ms)
        host.end(now_ms, heard=False)


def test_it_opens_after_some_failures_in_a_row() -> None:
    host = Host()
    fail(host, 0, FAILURES - 1)
    assert host.closed_until_ms(0) == 0
    host.begin(0)
    host.end(0, heard=True)
    fail(host, 0, FAILURES - 1)
    assert host.closed_until_ms(0) == 0
    fail(host, 0)
    assert host.closed_until_ms(0) == 1_000


def test_one_post_tries_whether_it_is_back() -> None:
    host = Host()
    fail(host, 0, FAILURES)
    assert host.closed_until_ms(999) == 1_000
    assert host.closed_until_ms(1_000) == 0
    host.begin(1_000)
    assert host.closed_until_ms(1_000) == 2_000
    host.end(1_000, heard=True)
    assert host.closed_until_ms(1_000) == 0


def test_the_pause_doubles_up_to_a_limit() -> None:
    host = Host()
    fail(host, 0, FAILURES)
    fail(host, 1_000)
    assert host.closed_until_ms(1_000) == 3_000
    fail(host, 3_000, 20)
    assert host.closed_until_ms(3_000) == 3_000 + LONGEST_PAUSE_MS


def test_hosts_that_are_not_used_are_forgotten() -> None:
    hosts = Hosts()
    busy = hosts.of("busy", 1)
    busy.begin(1)
    idle = hosts.of("idle", 1)
    later_ms = 2 * FORGET_MS + 2
    assert hosts.of("idle", later_ms) is not idle
    assert hosts.of("busy", later_ms) is busy
