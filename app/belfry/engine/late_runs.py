"""Which occurrences of a schedule are late, or were queued: asked by all that judge them."""

from __future__ import annotations

from belfry.engine.compiled_rule import CompiledRule
from belfry.engine.step import Step
from belfry.schedules.misfire import SKIP, Jitter, LateRun, late_run, policy_of
from belfry.store.layout.pending import Pending
from belfry.tenants.effective import Tenant


def spread_of(row: Pending) -> Jitter:
    """How the occurrences of a schedule are spread."""
    return Jitter(row.name, row.jitter_ms)


def too_old(row: Pending, rule: CompiledRule, tenant: Tenant, step: Step) -> bool:
    """Whether an occurrence lies further back than its tenant looks."""
    return row.due_ms < step.now_ms - max(tenant.look_back_ms, rule.limit_ms)


def queued_run(row: Pending, rule: CompiledRule, tenant: Tenant, step: Step) -> LateRun | None:
    """The occurrences up to now for which one fires; None where it stands for itself alone."""
    following_ms = rule.after_ms(row.nominal_ms)
    if following_ms is None or following_ms > step.now_ms:
        return None
    spread = spread_of(row)
    run = late_run(rule.trigger, row.nominal_ms, step.now_ms + 1, spread)
    late = step.now_ms - spread.due_ms(run.last_ms) > rule.limit_ms
    given_up = late and policy_of(rule.rule, tenant.misfire) == SKIP
    return None if given_up or run.number == 1 else run
