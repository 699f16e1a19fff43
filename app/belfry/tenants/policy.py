"""A tenant's policy: how the tenant is treated, and the problems of an invalid policy.

Policies live long, so they are frozen; the defaults here are the schema's, and a test compares
both. A policy may come from a newer release: `problems` lists the parts that this release would not
carry out as meant, and such a policy must not be applied in part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal

from belfry.schedules.instant_bounds import YEARS_100_MS
from belfry.schedules.request import tenant_problem
from belfry.schedules.target_kinds import is_allowed, place_of, problems_of
from belfry.schedules.targets import MAX_TARGETS, HttpTarget
from belfry.tenants.policy_references import key_ref_problem, ref_problem, secret_refs_problems

TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
MAX_SPREAD: Final = 1024
MAX_FORMER: Final = 8

MOST_RATE: Final = 1_000_000_000
# The least rate that counts as a rate: about one fire in eleven days.
LEAST_RATE: Final = 0.000_001
MOST_COUNT: Final = 2**31 - 1
DAY_MS: Final = 86_400_000
# The least and the most of each number.
BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "spread": (1, MAX_SPREAD),
    "look_back_ms": (0, YEARS_100_MS),
    "max_pending": (0, 2**63 - 1),
    "max_requests_per_second": (0, MOST_RATE),
    "max_fires_per_second": (0, MOST_RATE),
    "priority": (-MOST_COUNT, MOST_COUNT),
    "history_ms": (0, YEARS_100_MS),
    "remember_ms": (0, DAY_MS),
    "claim_check_over_bytes": (0, MOST_COUNT),
    "retry_max_attempts": (1, MOST_COUNT),
    "retry_initial_ms": (0, YEARS_100_MS),
    "retry_max_ms": (0, YEARS_100_MS),
    "retry_max_age_ms": (0, YEARS_100_MS),
}
_RATES: Final = ("max_requests_per_second", "max_fires_per_second")

Delivery = Literal["PAYLOAD", "ENVELOPE", "UNKNOWN"]
Guarantee = Literal["EXACTLY_ONCE", "AT_LEAST_ONCE", "UNKNOWN"]
LifecycleLevel = Literal["ALL", "OUTCOMES", "FAILURES", "UNKNOWN"]
Misfire = Literal["FIRE_ONCE", "FIRE_ALL", "SKIP", "UNKNOWN"]
Output = Literal["OWN", "SHARED", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """Fields of the schema, in its order; `TenantPolicy(tenant)` is the default policy.

    Rates and quotas hold for each partition.  Where tenants wait for their turn, the one with the
    higher `priority` goes first.  `look_back_ms` is how far back FIRE_ALL makes up for missed
    occurrences, `history_ms` how long outcomes can be looked up. `former_spreads` are the spreads
    that the tenant had before, the oldest first: its schedules may still live by them. If `output`
    is SHARED, events go to the one topic of all such tenants. A schedule that is over is remembered
    for `remember_ms`. Keys at `payload_key_ref` encrypt payloads at rest. With `source_header`
    events say where their request lies.  Payloads of more than `claim_check_over_bytes` are stored
    elsewhere.
    """

    tenant: str
    output_topic: str | None = None
    delivery: Delivery = "PAYLOAD"
    cloudevents: bool = False
    guarantee: Guarantee = "EXACTLY_ONCE"
    spread: int = 1
    lifecycle: LifecycleLevel = "FAILURES"
    misfire: Misfire | None = None
    look_back_ms: int = DAY_MS
    max_pending: int | None = None
    max_requests_per_second: float | None = None
    max_fires_per_second: float | None = None
    priority: int = 0
    history_ms: int = 604_800_000
    paused: bool = False
    http_targets: tuple[HttpTarget, ...] = ()
    retry_max_attempts: int | None = None
    retry_initial_ms: int | None = None
    retry_max_ms: int | None = None
    retry_max_age_ms: int | None = None
    allowed_hosts: tuple[str, ...] = ()
    former_spreads: tuple[int, ...] = ()
    removed: bool = False
    signing_secret_ref: str | None = None
    secret_refs: tuple[str, ...] = ()
    output: Output = "OWN"
    remember_ms: int = DAY_MS
    payload_key_ref: str | None = None
    source_header: bool = False
    claim_check_over_bytes: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether the tenant's events go to the topic that tenants share."""
        return self.output == "SHARED"


def problems(policy: TenantPolicy) -> list[str]:
    """Why the policy cannot be applied as it is meant, as sentences; empty if it can.

    This is checked where a policy is set, and again by each worker that reads one: its writer may
    be of a later release, or ignore these rules.
    """
    return [
        *_bad_names(policy),
        *_bad_symbols(policy),
        *_bad_numbers(policy),
        *_bad_targets(policy),
        *secret_refs_problems(policy.secret_refs, policy.allowed_hosts, policy.http_targets),
        *key_ref_problem(policy.payload_key_ref, policy.http_targets),
    ]


def _bad_names(policy: TenantPolicy) -> list[str]:
    rejected = tenant_problem(policy.tenant)
    found = [] if rejected is None else [rejected.reason]
    topic = policy.output_topic
    if topic is not None and (topic in (".", "..") or TOPIC.fullmatch(topic) is None):
        found.append(
            f"output_topic {topic[:260]!r} is no topic's name: 1-249 of A-Z a-z 0-9 . _ - are"
            " allowed."
        )
    if topic is not None and policy.is_shared:
        found.append(
            f"output SHARED has a topic of its own, and output_topic {topic[:260]!r} names another:"
            " set output_topic to none, or output to OWN."
        )
    return found + ref_problem("signing_secret_ref", policy.signing_secret_ref)


def _bad_symbols(policy: TenantPolicy) -> list[str]:
    given = {
        "delivery": policy.delivery,
        "guarantee": policy.guarantee,
        "lifecycle": policy.lifecycle,
        "misfire": policy.misfire,
        "output": policy.output,
        "strategy": next((t.strategy for t in policy.http_targets if t.strategy == "UNKNOWN"), ""),
    }
    return [
        f"{name} has a value that this release does not know: upgrade belfry, or set a value of"
        " docs/schemas.md."
        for name, value in given.items()
        if value == "UNKNOWN"
    ]


def _bad_numbers(policy: TenantPolicy) -> list[str]:
    found = [
        f"{name} is {value}; {least} to {most} is allowed."
        for name, (least, most) in BOUNDS.items()
        if (value := getattr(policy, name)) is not None
        and not (isfinite(value) and least <= value <= most)
    ]
    for name in _RATES:
        rate = getattr(policy, name)
        if rate is not None and 0 < rate < LEAST_RATE:
            found.append(f"{name} is {rate:g}; 0, or at least {LEAST_RATE:g} is allowed.")
    return found + _bad_former(policy)


def _bad_former(policy: TenantPolicy) -> list[str]:
    """Former spreads form a path that every request follows; it may get longer, but never loop."""
    former = policy.former_spreads
    found = []
    if not all(1 <= spread <= MAX_SPREAD for spread in former):
        found.append(f"former_spreads {list(former)} are not all from 1 to {MAX_SPREAD}.")
    if len(former) > MAX_FORMER:
        found.append(
            f"{len(former)} former_spreads; at most {MAX_FORMER} are asked for each request:"
            " leave out those under which nothing is pending any more."
        )
    if policy.spread in former or len(set(former)) != len(former):
        found.append(
            f"spread {policy.spread} after {list(former)} comes back to a value; take one that the"
            " tenant has not had, or leave out those under which nothing is pending any more."
        )
    return found


def _bad_targets(policy: TenantPolicy) -> list[str]:
    found = [problem for target in policy.http_targets for problem in problems_of(target)]
    if len(policy.http_targets) > MAX_TARGETS:
        found.append(f"{len(policy.http_targets)} http_targets; at most {MAX_TARGETS} are allowed.")
    found += [
        f"The host of {target.url[:200]!r} is none of allowed_hosts: add it there, or leave the"
        " target out."
        for target in policy.http_targets
        if place_of(target) and not is_allowed(target, policy.allowed_hosts)
    ]
    return found
