"""The doctor's parts that need no broker."""

from __future__ import annotations

from belfry.cli.doctor import fetch, skew


def test_the_largest_skew_counts() -> None:
    page = 'belfry_clock_skew_seconds{a="1"} 0.1\nbelfry_clock_skew_seconds{a="2"} -0.7\nother 9\n'
    assert skew(page) == -0.7
    assert skew("other 9") is None


def test_a_page_that_cannot_be_had_says_why() -> None:
    assert fetch("http://127.0.0.1:1/")[0] is None
    assert fetch("no address")[0] is None
