"""Holds tenants, and releases them, by the problems that were found with their topics.

    problem found                       the tenant
    none, payloads                      is released
    none, envelopes, head is settled    is released
    none, envelopes, no head yet        is released if the registry gives a head, else held
    its topic is being made             is held until the thread that makes topics settles it
    a partition has no leader           is held, and tried again once a look has found one
    any other                           is held, and tried again after a pause that doubles

The directory keeps who is held: the engine leaves the events of a held tenant in the backlog, with
the reason. `OutputState` keeps when a tenant is tried again. Only this module changes both, so that
each held tenant is tried again.

A call may wait for the registry, as long as its client's time-out; never for a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import structlog

from belfry.host import machine
from belfry.outputs.envelopes import Envelopes, is_framed
from belfry.outputs.output_state import OutputState
from belfry.outputs.topic_queue import CROWDED_OUT, TO_MAKE
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Tenant, TenantFacts

OFFLINE: Final = "a partition of its topic has no leader"

log = structlog.get_logger(__name__)


class Holds:
    """Holds tenants and releases them, and keeps that in `state` and directory; for all threads."""

    def __init__(self, tenants: Tenants, state: OutputState, envelopes: Envelopes) -> None:
        self.state = state
        self._tenants = tenants
        self._envelopes = envelopes
        # Why tenants of the shared topic wait, as it was logged last; empty if they do not wait.
        self._shared_told = ""

    def settle(self, topics: Mapping[str, str], problems: Mapping[str, str]) -> None:
        """Release tenants, or hold them, by the problems that were found with their topics.

        `topics` has by tenant the topic that was checked; a tenant that has another one by now is
        left out.
        """
        findings: list[tuple[Tenant, TenantFacts]] = []
        for name, topic in topics.items():
            tenant = self._tenants.of(name)
            if tenant.topic != topic:
                # A policy has moved the tenant meanwhile, and the thread of policies makes it
                # ready.
                continue
            reason, found = problems.get(name, ""), TenantFacts()
            enveloped = tenant.delivery is Delivery.ENVELOPE
            if not reason and enveloped and not is_framed(tenant, tenant.topic):
                if self.state.pauses(name, machine.monotonic()):
                    # The tenant is held, and must not make every step ask the registry.
                    continue
                found["envelope_head"], reason = self._envelopes.head(tenant.topic)
            found |= self._kept_back(tenant, reason) if reason else self._let_go(tenant)
            if reason == CROWDED_OUT:
                found["crowded_out"] = True
            findings.append((tenant, found))
        self._tenants.note(findings)

    def hold(self, tenants: Iterable[Tenant], reason: str) -> bool:
        """Let these tenants' events wait, for this reason; returns whether there are any."""
        findings = [(each, self._kept_back(each, reason)) for each in tenants]
        self._tenants.note(findings)
        return bool(findings)

    def lose(self, lost: Collection[str], leaderless: Collection[str]) -> None:
        """Take note of topics that are gone, or that have a partition without a leader."""
        for topic in lost:
            on_it = self._tenants.on(topic)
            self.state.unready(each.name for each in on_it)
            if topic in leaderless:
                self.hold(on_it, OFFLINE)
            self.state.close([topic])

    def _kept_back(self, tenant: Tenant, reason: str) -> TenantFacts:
        # The thread that makes a topic settles its tenants, so no other look is needed. A leader
        # comes back with its broker, and all events that fell due wait for that look, so the pause
        # does not grow.
        made, now_s = reason == TO_MAKE, machine.monotonic()
        self.state.keep_back(
            tenant.name, tenant.topic, None if made else now_s, grows=reason != OFFLINE
        )
        if not made and tenant.held in ("", TO_MAKE) and not self._logged_before(tenant, reason):
            log.warning("tenant held: its events wait", tenant=tenant.name, reason=reason)
        return {"held": reason}

    def _logged_before(self, tenant: Tenant, reason: str) -> bool:
        """Whether the same was logged for the shared topic, which thousands of tenants may have."""
        if not tenant.shared:
            return False
        before, self._shared_told = self._shared_told, reason
        return before == reason

    def _let_go(self, tenant: Tenant) -> TenantFacts:
        self.state.let_go(tenant.name)
        if not tenant.held:
            return {}
        if tenant.held != TO_MAKE and not self._logged_before(tenant, ""):
            log.info("tenant released", tenant=tenant.name)
        return {"held": ""}
