"""A tenant's policy as a file declares it: every field of `TenantPolicy`.

The file says the whole policy: a field that it leaves out has its default.  The one exception is
`former_spreads`, which belfry itself keeps (`client.tenants.changed`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final

from belfry.client.policy_fields import BadPolicy, changed, policy_from
from belfry.declared.yaml_lines import Complaints, Entry, unknown
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy, problems

FORMER: Final = "former_spreads"
# Names that a file may use; the tenant is where the policy stands.
KNOWN: Final = tuple(each.name for each in fields(TenantPolicy) if each.name != "tenant")
_TARGET: Final = tuple(each.name for each in fields(HttpTarget))
_QUOTED: Final = re.compile(r"'([^']*)'")
_INPUT: Final = "Input should be "


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """A policy, and the fields that the file names."""

    policy: TenantPolicy
    given: frozenset[str]

    def after(self, before: TenantPolicy | None, *, used: bool) -> TenantPolicy:
        """The new policy, made from the one `before`.

        `used` says that the tenant may have schedules, so a former spread has to be kept.
        """
        wanted = {name: getattr(self.policy, name) for name in KNOWN}
        if FORMER not in self.given:
            del wanted[FORMER]
        return changed(before or TenantPolicy(self.policy.tenant), wanted, used=used)


def declared_policy(
    tenant: str, at: Entry, path: str, complaints: Complaints
) -> DeclaredPolicy | None:
    """The policy of an entry, or None where something is wrong with it.

    Each field is judged by itself first, for its own line; the rules of workers judge the fields
    together.
    """
    before = len(complaints.lines)
    lines: dict[str, Entry] = {}
    given: dict[str, Any] = {}
    for each in at.entries(complaints, path):
        lines[each.name] = each
        if each.name not in KNOWN:
            complaints.add(each, f"{path}.{each.name}", unknown(each.name, KNOWN))
        elif _is_good(each, f"{path}.{each.name}", complaints):
            given[each.name] = each.value()
    if len(complaints.lines) > before:
        return None
    policy = policy_from({"tenant": tenant, **given})
    for problem in problems(policy):
        name = next((name for name in lines if name in problem), "")
        complaints.add(lines.get(name, at), f"{path}.{name}".rstrip("."), problem)
    if len(complaints.lines) > before:
        return None
    return DeclaredPolicy(policy, frozenset(given))


def _is_good(entry: Entry, path: str, complaints: Complaints) -> bool:
    """Whether a field's value is of its type; a mistake is a complaint at its line."""
    before = len(complaints.lines)
    if entry.name == "http_targets":
        for target in entry.items():
            for each in target.entries(complaints, f"{path}[{target.name}]"):
                if each.name not in _TARGET:
                    where = f"{path}[{target.name}].{each.name}"
                    complaints.add(each, where, unknown(each.name, _TARGET))
    try:
        policy_from({entry.name: entry.value()})
    except BadPolicy as error:
        complaints.add(entry, path, _worded(str(error), entry.value()))
    except ValueError as error:
        complaints.add(entry, path, str(error))
    return len(complaints.lines) == before


def _worded(message: str, given: object) -> str:
    """A type's complaint without the name of the policy, and with the nearest allowed value."""
    text = message.partition(": ")[2]
    allowed = [name for name in _QUOTED.findall(text.partition(_INPUT)[2]) if name != "UNKNOWN"]
    text = text.replace(_INPUT, "allowed is ").replace(" or 'UNKNOWN'", "")
    near = get_close_matches(str(given).upper(), allowed, n=1)
    return f"{text} Did you mean {near[0]}?" if near else text
