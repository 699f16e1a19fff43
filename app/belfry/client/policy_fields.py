"""Policies as people give them: fields checked, changes worked out, conflicts with others found.

A policy is given as fields, of JSON, of TOML or of a form. This module answers three questions,
from the fields alone and the present policies: what policy do they make (`policy_from`, `changed`),
does it get in the way of other tenants (`conflicts`), and may one be forgotten (`removal_problem`)?
`tenants.py` reads and writes the policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from belfry.client.errors import BelfryError
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_references import REFERRING, secret_ref_problem

_POLICY: Final = TypeAdapter(TenantPolicy)
_QUOTED: Final = re.compile(r"'([^']*)'")


class BadPolicy(BelfryError, ValueError):
    """A policy that no worker would carry out; the message says what is wrong."""


def conflicts(
    before: Mapping[str, TenantPolicy], policies: tuple[TenantPolicy, ...]
) -> Iterator[str]:
    """Conflicts of these policies with the present ones, which are given by tenant."""
    yield from _colliding(before, policies)
    yield from _bad_refs(before, policies)


def _colliding(
    before: Mapping[str, TenantPolicy], policies: tuple[TenantPolicy, ...]
) -> Iterator[str]:
    """Tenants whose topics would share their metrics in Kafka; a dot and an underscore are the same
    there.
    """
    owners = {_metric_name(name): name for name in before}
    for policy in policies:
        other = owners.setdefault(_metric_name(policy.tenant), policy.tenant)
        if other != policy.tenant:
            yield (
                f"{policy.tenant}: tenant {other!r} exists, and in Kafka's metrics a dot and an"
                " underscore are the same; choose another name."
            )


def _bad_refs(
    before: Mapping[str, TenantPolicy], policies: tuple[TenantPolicy, ...]
) -> Iterator[str]:
    """References to secrets that are new and that no worker would follow.

    One that stands already does not keep anything else of its policy from being changed.
    """
    for policy in policies:
        stands = before.get(policy.tenant)
        for name in REFERRING:
            reference = getattr(policy, name)
            if stands is None or getattr(stands, name) != reference:
                why = secret_ref_problem(reference, name)
                if why is not None:
                    yield f"{policy.tenant}: {why}"


def policy_from(given: Mapping[str, Any]) -> TenantPolicy:
    """A policy from its fields, as JSON or TOML hold them; `BadPolicy` says what is wrong."""
    known = [each.name for each in fields(TenantPolicy)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            guess = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known[1:])}."
            raise BadPolicy(f"A policy has no field {name!r}. {guess} See docs/schemas.md.")
    try:
        return _POLICY.validate_python({"tenant": "", **given})
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])} is {each['input']!r}: {_wanted(each)}"
            for each in error.errors()
        )
        end = "" if found.endswith("?") else "."
        raise BadPolicy(f"Policy of {given.get('tenant', '?')}: {found}{end}") from None


def _wanted(problem: Mapping[str, Any]) -> str:
    """The allowed values of a field, for people; `problem` is pydantic's."""
    kind = str(problem["type"])
    if kind.startswith("bool"):
        return "give true or false"
    if kind.startswith("int"):
        return "give a whole number"
    if kind != "literal_error":
        return str(problem["msg"])
    # A field for readers of a later release only cannot be given.
    names = [each for each in _QUOTED.findall(problem["ctx"]["expected"]) if each != "UNKNOWN"]
    near = get_close_matches(str(problem["input"]).upper(), names, n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    return f"give one of {', '.join(names)}{guess}"


def changed(before: TenantPolicy, change: Mapping[str, Any], *, used: bool) -> TenantPolicy:
    """The policy after a change of some fields.

    If `spread` changes and the tenant was `used` before, the old value joins `former_spreads`, so
    that schedules that began under it are still found.
    """
    after = policy_from({**_plain(before), **change})
    moves = after.spread != before.spread and "former_spreads" not in change
    return replace(after, former_spreads=_longer(before)) if moves and used else after


def removal_problem(policy: TenantPolicy) -> str | None:
    """Why a policy cannot be forgotten, or None: it may know where schedules live."""
    if policy.spread == 1 and not policy.former_spreads:
        return None
    return (
        f"The policy of {policy.tenant} says where its schedules live: spread {policy.spread},"
        f" former_spreads {list(policy.former_spreads)}. Without it those elsewhere would not be"
        " found. Set spread to 1, and former_spreads to [] once they are over; or remove it with"
        " what is pending."
    )


def _longer(before: TenantPolicy) -> tuple[int, ...]:
    return (*before.former_spreads, before.spread)


def _plain(policy: TenantPolicy) -> dict[str, Any]:
    return {each.name: getattr(policy, each.name) for each in fields(policy)}


def _metric_name(tenant: str) -> str:
    return tenant.replace(".", "_")
