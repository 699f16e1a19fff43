"""Hosts of webhooks that do not answer are known by what attempts come to."""

from __future__ import annotations

from dataclasses import replace

from belfry.api.workers.view import SilentHostView
from belfry.delivery.answers import Answer, End
from belfry.delivery.hosts import FAILURES
from belfry.delivery.silent_hosts import MOST, REMEMBERED_MS, SilentHosts

URL = "https://Hooks.example:8443/path?token=secret"
NAME = "hooks.example:8443"


def unheard(url: str = URL) -> Answer:
    return Answer(End.AGAIN, url, "timeout", "no answer within 1000 ms", heard=False)


def test_a_host_is_silent_after_so_many_posts_without_an_answer() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for _ in range(FAILURES - 1):
        silent.after(unheard())
    assert (len(silent), silent.sentence()) == (0, "")
    silent.after(unheard())
    assert len(silent) == 1
    assert silent.sentence().startswith(f"webhook hosts do not answer: {NAME};")
    assert "secret" not in silent.sentence()


def test_any_answer_shows_that_a_host_is_there() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for _ in range(FAILURES):
        silent.after(unheard())
    silent.after(Answer(End.AGAIN, URL, "http_status", "503", status=503))
    assert (len(silent), silent.sentence()) == (0, "")
    for _ in range(FAILURES - 1):
        silent.after(unheard())
    assert len(silent) == 0


def test_a_delivery_that_was_postponed_for_its_host_says_enough() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    silent.after(Answer(End.POSTPONED, URL, "host_silent", "did not answer 5 times in a row"))
    assert len(silent) == 1


def test_a_silent_host_is_told_of_with_since_when_why_and_when_it_is_tried_again() -> None:
    wall_ms = [1_000.0]
    silent = SilentHosts(lambda: 0.0, lambda: wall_ms[0])
    for _ in range(FAILURES):
        silent.after(unheard())
        wall_ms[0] += 1_000
    began_ms = 1_000 * FAILURES
    found = SilentHostView(NAME, began_ms, began_ms, 0, "no answer within 1000 ms")
    assert silent.views() == [found]
    silent.after(Answer(End.POSTPONED, URL, "host_silent", "5 times in a row", 9_000))
    # The cause is what a post came to, and not that others are postponed for it.
    assert silent.views() == [replace(found, tried_ms=began_ms + 1_000, next_ms=9_000)]
    silent.after(Answer(End.DELIVERED, URL))
    assert silent.views() == []


def test_a_break_by_people_says_nothing_of_a_host() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for _ in range(FAILURES):
        silent.after(unheard())
    silent.after(Answer(End.POSTPONED, URL, "host_broken", "ann has broken it", 9_000))
    assert silent.names() == [NAME]


def test_hosts_are_told_apart_and_three_are_named() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for number in range(5):
        for _ in range(FAILURES):
            silent.after(unheard(f"http://h{number}/x"))
    assert len(silent) == 5
    assert "h0, h1, h2 and 2 more;" in silent.sentence()


def test_only_so_many_hosts_are_remembered() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for number in range(MOST + 5):
        silent.after(unheard(f"http://h{number}/x"))
    assert len(silent._missed) == MOST


def test_what_nobody_tries_any_more_is_forgotten() -> None:
    """Its deliveries were given up, or its target is gone: no answer will ever come."""
    now_ms = [0.0]
    silent = SilentHosts(lambda: now_ms[0], lambda: 0.0)
    for _ in range(FAILURES):
        silent.after(unheard())
    now_ms[0] = REMEMBERED_MS - 1
    assert silent.names() == [NAME]
    silent.after(unheard())
    now_ms[0] += REMEMBERED_MS - 1
    assert silent.names() == [NAME]
    now_ms[0] += 1
    assert (silent.names(), silent.sentence(), len(silent)) == ([], "", 0)


def test_nothing_is_known_once_others_deliver() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for _ in range(FAILURES):
        silent.after(unheard())
    silent.forget()
    assert silent.names() == []
    silent.after(unheard())
    assert silent.names() == []


def test_neither_a_topic_nor_a_process_that_ended_is_a_silent_host() -> None:
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    for _ in range(FAILURES):
        silent.after(unheard("kafka:orders"))
        silent.after(Answer(End.AGAIN, URL, "interrupted", "the process ended", heard=False))
    assert silent.names() == []
