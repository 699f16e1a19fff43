"""`If-Match`: an ETag of belfry's, or a version alone."""

from __future__ import annotations

import pytest

from belfry.api.json.conditions import expected_version
from belfry.api.problems import Problem
from belfry.schedules.identity import (
    etag_of,
    expected_in,
    expected_of,
    generation_at,
    generation_of,
)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, None),
        ('"3"', 3),
        ("3", 3),
        ('W/"3"', 3),
        (' "3" ', 3),
        ('"7.3"', expected_of(7, 3)),
        ('W/"2147483647.2147483647"', expected_of(2**31 - 1, 2**31 - 1)),
    ],
)
def test_what_an_if_match_expects(given: str | None, found: int | None) -> None:
    assert expected_version(given) == found


@pytest.mark.parametrize(
    "given", ["*", "", '"x"', '"0"', '"1.0"', '"0.1"', '".1"', '"1."', '"1.2.3"', '"2147483648"',
              '"2147483648.1"', '"1", "2"']
)  # fmt: skip
def test_what_names_no_version_is_refused(given: str) -> None:
    with pytest.raises(Problem, match="names no version"):
        expected_version(given)


def test_an_etag_says_what_expected_version_holds() -> None:
    lives = [
        generation_at(partition, offset) for partition in (0, 3, 1023) for offset in (0, 1, 10**9)
    ]
    generations = [generation_of(life) for life in lives]
    assert len(set(generations)) == len(lives)
    for generation in generations:
        assert 0 < generation < 2**31
        assert expected_version(f'"{etag_of(generation, 5)}"') == expected_of(generation, 5)
        assert expected_in(expected_of(generation, 5)) == (generation, 5)
    assert expected_in(5) == (0, 5)
    assert expected_in(-(2**63)) == (0, -(2**63))
    assert (etag_of(None, 5), etag_of(7, None)) == ("5", None)
