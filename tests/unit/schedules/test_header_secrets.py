"""References to secrets in headers: how they are read, who may name them, what is warned of."""

from __future__ import annotations

import pytest

from belfry.schedules.header_secrets import (
    carries_credentials,
    filled,
    literal_credentials,
    literal_warning,
    named_problem,
    reach_problem,
    references_in,
    references_of,
    syntax_problem,
)
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy, problems

REF = "env:BELFRY_SECRET_SHOP"
BEARER = f"Bearer ${{{REF}}}"


def test_references_are_found_and_filled() -> None:
    value = f"{BEARER}:${{file:shop/key}}"
    assert references_in(value) == (REF, "file:shop/key")
    secrets = {REF: "one", "file:shop/key": "two"}
    assert filled(value, secrets.__getitem__) == "Bearer one:two"


def test_a_secret_is_not_looked_into_for_further_references() -> None:
    assert filled(BEARER, lambda _: "${file:other}") == "Bearer ${file:other}"


def test_each_reference_of_a_target_is_named_once() -> None:
    assert references_of((("a", BEARER), ("b", BEARER), ("c", "${file:x}"))) == (REF, "file:x")


@pytest.mark.parametrize(
    "value", ["${env:", "${env:}", "${env:A B}", "${file:}", "${file:a b}", f"{BEARER} ${{env:1}}"]
)
def test_a_reference_that_cannot_be_read_is_refused(value: str) -> None:
    why = syntax_problem("authorization", value)
    assert why is not None
    assert "${env:BELFRY_SECRET_NAME}" in why
    assert why in _problems(HttpTarget("https://a/", headers=(("authorization", value),)))


@pytest.mark.parametrize("value", ["", "Bearer x", "${HOME}", "$env:X", "{env:X}", BEARER])
def test_what_begins_no_reference_is_a_value(value: str) -> None:
    assert syntax_problem("x", value) is None


def test_a_target_names_what_the_policy_lists_and_nothing_else() -> None:
    headers = (("authorization", BEARER),)
    assert reach_problem(headers, (REF,), ("api.example.com",)) is None
    assert "none of secret_refs" in (reach_problem(headers, (), ("api.example.com",)) or "")
    assert reach_problem(headers, (REF + "_2",), ("a",)) == (
        "A header names the secret 'env:BELFRY_SECRET_SHOP', which is none of secret_refs of the"
        " tenant's policy: leave it out, or ask the operators of belfry to add it there."
    )
    assert reach_problem(headers, (REF,), ()) == (
        "A header names a secret, and the tenant's policy has no allowed_hosts: ask the operators"
        " of belfry to list the hosts that may get it."
    )
    assert reach_problem((("x", "y"),), (), ()) is None


@pytest.mark.parametrize(
    ("refs", "hosts", "told"),
    [
        ((REF,), (), "without allowed_hosts"),
        (("env:PATH",), ("a",), "names no place"),
        (("the-secret-itself",), ("a",), "names no place"),
        (("file:",), ("a",), "names no place"),
        (tuple(f"file:{each}" for each in range(65)), ("a",), "at most 64"),
    ],
)
def test_a_policy_that_allows_what_it_must_not_is_refused(
    refs: tuple[str, ...], hosts: tuple[str, ...], told: str
) -> None:
    found = problems(TenantPolicy("a", secret_refs=refs, allowed_hosts=hosts))
    assert any(told in each for each in found), found


def test_targets_of_a_policy_are_held_to_its_list() -> None:
    target = HttpTarget("https://api.example.com/", headers=(("authorization", BEARER),))
    hosts = ("api.example.com",)
    assert problems(TenantPolicy("a", http_targets=(target,), allowed_hosts=hosts))
    fine = TenantPolicy("a", http_targets=(target,), allowed_hosts=hosts, secret_refs=(REF,))
    assert problems(fine) == []


@pytest.mark.parametrize(
    ("name", "carries"),
    [
        ("Authorization", True),
        ("Proxy-Authorization", True),
        ("Cookie", True),
        ("X-Api-Key", True),
        ("x_api_key", True),
        ("X-Auth-Token", True),
        ("client-secret", True),
        ("X-Team", False),
        ("content-type", False),
    ],
)
def test_names_that_carry_credentials(name: str, carries: bool) -> None:
    assert carries_credentials(name) is carries


def test_a_literal_credential_is_warned_of_without_its_value() -> None:
    headers = [("Authorization", "Bearer abc"), ("cookie", ""), ("x-token", BEARER), ("x", "y")]
    assert literal_credentials(headers) == ["Authorization"]
    told = literal_warning(["Authorization"]) or ""
    assert "authorization" in told
    assert "abc" not in told
    assert literal_warning([]) is None
    assert literal_warning(["X-Token", "Cookie", "x-token"]) == (
        "header cookie, x-token of an HTTP target holds its value as it is, which lies in topics"
        " readable: put the secret into a variable BELFRY_SECRET_NAME or a file of the process that"
        " delivers, and write ${env:...} or ${file:...} in its place"
    )


def _problems(target: HttpTarget) -> list[str]:
    return problems(TenantPolicy("a", http_targets=(target,)))


def test_a_reference_of_255_characters_is_the_longest() -> None:
    assert named_problem("file:".ljust(255, "a")) is None
    assert named_problem("file:".ljust(256, "a")) is not None
