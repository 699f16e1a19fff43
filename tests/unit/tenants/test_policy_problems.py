"""What is wrong with a policy, word by word: its operator reads nothing else of it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.schedules.header_secrets import MOST_REFERENCES
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import BOUNDS, TenantPolicy, problems
from belfry.tenants.policy_references import NO_TARGETS, secret_ref_problem

HOOK: Final = HttpTarget("https://hooks.example.com/x")
UPGRADE: Final = (
    " has a value that this release does not know: upgrade belfry, or set a value of"
    " docs/schemas.md."
)
RATE: Final = "; 0, or at least 1e-06 is allowed."
NOT_AMONG_HOSTS: Final = (
    "The host of 'https://hooks.example.com/x' is none of allowed_hosts: add it there, or leave the"
    " target out."
)
BACK: Final = (
    " comes back to a value; take one that the tenant has not had, or leave out those under which"
    " nothing is pending any more."
)


def wrong(**fields: Any) -> list[str]:
    return problems(TenantPolicy("demo", **fields))


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_may_be_its_least_and_its_most_and_no_more(name: str) -> None:
    least, most = BOUNDS[name]
    assert wrong(**{name: least}) == wrong(**{name: most}) == []
    for value in (least - 1, most + 1):
        assert wrong(**{name: value}) == [f"{name} is {value}; {least} to {most} is allowed."]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_fires_per_second": 0.000_001}, []),
        ({"max_fires_per_second": 0.000_000_9}, ["max_fires_per_second is 9e-07" + RATE]),
        ({"max_requests_per_second": 1e-9}, ["max_requests_per_second is 1e-09" + RATE]),
        (
            {"max_requests_per_second": float("nan")},
            ["max_requests_per_second is nan; 0 to 1000000000 is allowed."],
        ),
        ({"delivery": "UNKNOWN"}, ["delivery" + UPGRADE]),
        ({"guarantee": "UNKNOWN", "lifecycle": "UNKNOWN"}, ["guarantee" + UPGRADE,
                                                             "lifecycle" + UPGRADE]),
        ({"misfire": "UNKNOWN"}, ["misfire" + UPGRADE]),
        ({"output": "UNKNOWN"}, ["output" + UPGRADE]),
        ({"output_topic": "a" * 249}, []),
        ({"output_topic": "..."}, []),
        (
            {"output_topic": "."},
            ["output_topic '.' is no topic's name: 1-249 of A-Z a-z 0-9 . _ - are allowed."],
        ),
        (
            {"output_topic": ".."},
            ["output_topic '..' is no topic's name: 1-249 of A-Z a-z 0-9 . _ - are allowed."],
        ),
        (
            {"output_topic": "x/" + "y" * 300},
            [(f"output_topic {'x/' + 'y' * 258!r} is no topic's name: 1-249 of A-Z a-z 0-9 . _ -"
             " are allowed.")],
        ),
        (
            {"output_topic": "mine", "output": "SHARED"},
            [("output SHARED has a topic of its own, and output_topic 'mine' names another: set"
             " output_topic to none, or output to OWN.")],
        ),
        (
            {"output_topic": "a" * 300, "output": "SHARED"},
            [(f"output_topic '{'a' * 260}' is no topic's name: 1-249 of A-Z a-z 0-9 . _ - are"
              " allowed."),
             ("output SHARED has a topic of its own, and output_topic"
              f" '{'a' * 260}' names another: set output_topic to none, or output to OWN.")],
        ),
        ({"former_spreads": (2, 1024)}, []),
        (
            {"former_spreads": (0, 2)},
            ["former_spreads [0, 2] are not all from 1 to 1024."],
        ),
        (
            {"former_spreads": (1025,)},
            ["former_spreads [1025] are not all from 1 to 1024."],
        ),
        ({"former_spreads": tuple(range(2, 10))}, []),
        (
            {"former_spreads": tuple(range(2, 11))},
            [("9 former_spreads; at most 8 are asked for each request: leave out those under which"
             " nothing is pending any more.")],
        ),
        ({"spread": 4, "former_spreads": (2, 4)}, ["spread 4 after [2, 4]" + BACK]),
        ({"spread": 4, "former_spreads": (2, 2)}, ["spread 4 after [2, 2]" + BACK]),
        ({"http_targets": (HOOK,) * 16}, []),
        ({"http_targets": (HOOK,) * 17}, ["17 http_targets; at most 16 are allowed."]),
        ({"http_targets": (HOOK,), "allowed_hosts": ("*.example.com",)}, []),
        ({"http_targets": (HOOK,), "allowed_hosts": ("example.com",)}, [NOT_AMONG_HOSTS]),
        ({"signing_secret_ref": "env:A_1"}, []),
        (
            {"signing_secret_ref": "env:1"},
            [("signing_secret_ref, 5 characters, names no place of a secret: env:NAME or file:PATH;"
             " never put the secret itself there.")],
        ),
        ({"payload_key_ref": "file:k"}, []),
        (
            {"payload_key_ref": "file:"},
            [("payload_key_ref, 5 characters, names no place of a secret: env:NAME or file:PATH;"
             " never put the secret itself there.")],
        ),
        (
            {"payload_key_ref": "file:k", "http_targets": (HOOK,)},
            [f"http_targets: {NO_TARGETS}"],
        ),
        (
            {"secret_refs": ("env:BELFRY_SECRET_A",)},
            [("secret_refs without allowed_hosts would let targets send secrets to every host: list"
             " the hosts that may get them.")],
        ),
        ({"secret_refs": ("env:BELFRY_SECRET_A",), "allowed_hosts": ("a",)}, []),
    ],
)  # fmt: skip
def test_what_is_said_of_a_policy(fields: dict[str, Any], said: list[str]) -> None:
    assert wrong(**fields) == said


def test_a_name_that_no_tenant_has_is_said_first() -> None:
    found = problems(TenantPolicy("a b", spread=0))
    assert len(found) == 2
    assert "'a b'" in found[0]
    assert found[1] == "spread is 0; 1 to 1024 is allowed."


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = wrong(spread=0, output_topic="", delivery="UNKNOWN", payload_key_ref="k")
    assert [each.partition(" ")[0] for each in found] == [
        "output_topic", "delivery", "spread", "payload_key_ref,"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "reference", [None, "file:anything", "env:BELFRY_SECRET_A", "env:BELFRY_SECRET__"]
)
def test_workers_read_secrets_from_files_and_variables_of_their_own(reference: str | None) -> None:
    assert secret_ref_problem(reference) is None


@pytest.mark.parametrize("reference", ["env:HOME", "env:BELFRY_SECRET_", "env:A" + "A" * 200])
def test_a_variable_that_workers_do_not_read_secrets_from(reference: str) -> None:
    assert secret_ref_problem(reference) == (
        f"signing_secret_ref {reference[:100]!r} names a variable that workers do not read secrets"
        " from: give them the secret in one whose name begins with BELFRY_SECRET_, or in a file"
        " below their BELFRY_SECRETS_DIR."
    )
    named = secret_ref_problem(reference, "payload_key_ref") or ""
    assert named.startswith("payload_key_ref 'env:")


def test_so_many_references_are_allowed_and_no_more() -> None:
    refs = tuple(f"env:BELFRY_SECRET_HEADER_{n}" for n in range(MOST_REFERENCES + 1))
    assert wrong(secret_refs=refs[1:], allowed_hosts=("a.example",)) == []
    said = f"{len(refs)} secret_refs; at most {MOST_REFERENCES} are allowed."
    assert wrong(secret_refs=refs, allowed_hosts=("a.example",)) == [said]


def test_of_a_long_address_the_beginning_is_shown() -> None:
    target = HttpTarget("https://b.example/" + "x" * 300)
    (said,) = wrong(http_targets=(target,), allowed_hosts=("a.example",))
    assert said.startswith(f"The host of {target.url[:200]!r} is none of allowed_hosts")
