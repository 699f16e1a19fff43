"""Kinds of delivery targets, by how their addresses begin, and the faults of a target.

    https://hooks.example.com/x     http     posted, signed, tried again
    kafka:payments.audit            kafka    written there, tried again

A kind is a module here, which judges addresses, and one in `delivery/kinds`, which sends events
there; `_ALL` has a line for each.  Neither of them knows the other kinds: the functions below find
the kind of a target and ask it.

    url ─► kind_of ─┬─► problems    is the target well formed?            asked of every request
                    ├─► place       how does `allowed_hosts` name it?
                    └─► allows      does the policy let it be used?       before each attempt, too
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from belfry.schedules.target_kinds.http import HTTP
from belfry.schedules.target_kinds.kafka import KAFKA
from belfry.schedules.target_kinds.kind import TargetKind
from belfry.schedules.targets import (
    MAX_BYTES,
    MAX_TARGETS,
    STRATEGIES,
    HttpTarget,
    encode_targets,
)

# The last kind judges addresses that no other one knows, and has those that no other one claims.
_ALL: Final[tuple[TargetKind, ...]] = (KAFKA, HTTP)


def kind_of(target: HttpTarget) -> TargetKind:
    """The kind that judges this target's address, good or not."""
    return next((kind for kind in _ALL if kind.knows(target.url)), _ALL[-1])


def place_of(target: HttpTarget) -> str:
    """Where a target's events go, as `allowed_hosts` names it; empty for an invalid address."""
    return kind_of(target).place(target.url)


def problems_of(target: HttpTarget) -> list[str]:
    """The faults of a target, whether a request or a policy names it; sentences for people."""
    return kind_of(target).problems(target)


def list_problem(targets: Sequence[HttpTarget]) -> str | None:
    """Why a schedule or a policy cannot have these targets, or None.

    At most 16 targets, which take at most 16 384 bytes at rest, for they lie in each schedule.
    """
    if len(targets) > MAX_TARGETS:
        return f"{len(targets)} http_targets; at most {MAX_TARGETS} are allowed."
    unknown = next((each.strategy for each in targets if each.strategy not in STRATEGIES), None)
    if unknown is not None:
        return f"strategy {unknown!r} of a target is not known: {', '.join(STRATEGIES)}."
    for target in targets:
        found = problems_of(target)
        if found:
            return found[0]
    size = len(encode_targets(targets))
    if size > MAX_BYTES:
        return f"http_targets take {size} bytes; at most {MAX_BYTES} are allowed."
    return None


def is_allowed(target: HttpTarget, allowed_hosts: Iterable[str]) -> bool:
    """Whether a policy with these `allowed_hosts` lets a target be used.

    Every kind sees the whole list.  So a list that names anything at all is closed to what it does
    not name, of every kind, as it is for a release that does not know the kind of an entry.
    """
    kind = kind_of(target)
    return kind.allows(kind.place(target.url), tuple(allowed_hosts))
