"""Tenants that are held, and those that are let go: what follows from the problems of a topic.

    problem found                        what becomes of the tenant
    none, payloads                      let go
    none, envelopes, head is settled    let go
    none, envelopes, no head yet        the registry is asked: it lets go, or is the problem
    its topic is being made             held, and told by the thread that makes it: no pause
    a partition has no leader           held, and tried again once a look has found one
    any other                           held, and tried again after a pause that doubles

Held is a word of the directory: the engine leaves the events of a held tenant in the backlog, with
the reason.  When a tenant is tried again is kept in `OutputState`.  Both are told here and nowhere
else, so that no tenant is held that nobody tries again.

May wait for the registry, as long as its client's time-out; never for a broker.
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
    """Holds tenants and lets them go, and keeps that in `state` and directory; for all threads."""

    def __init__(self, tenants: Tenants, state: OutputState, envelopes: Envelopes) -> None:
        self.state = state
        self._tenants = tenants
        self._envelopes = envelopes
        # Why tenants of the shared topic wait, as it was logged last; empty where they do not.
        self._shared_told = ""

    def settle(self, topics: Mapping[str, str], problems: Mapping[str, str]) -> None:
        """Let tenants go, or hold them, by the problems that were found with their topics.

        `topics` are by tenant what was looked at; a tenant that has another one by now is left out.
        """
        findings: list[tuple[Tenant, TenantFacts]] = []
        for name, topic in topics.items():
            tenant = self._tenants.of(name)
            if tenant.topic != topic:
                # A policy has moved it meanwhile, and the thread of policies makes it ready there.
                continue
            reason, found = problems.get(name, ""), TenantFacts()
            enveloped = tenant.delivery is Delivery.ENVELOPE
            if not reason and enveloped and not is_framed(tenant, tenant.topic):
                if self.state.pauses(name, machine.monotonic()):
                    # It is held, and its requests must not ask the registry with every step.
                    continue
                found["envelope_head"], reason = self._envelopes.head(tenant.topic)
            found |= self._kept_back(tenant, reason) if reason else self._let_go(tenant)
            if reason == CROWDED_OUT:
                found["crowded_out"] = True
            findings.append((tenant, found))
        self._tenants.note(findings)

    def hold(self, tenants: Iterable[Tenant], reason: str) -> bool:
        """Let these tenants' events wait, for this reason; whether there is anybody."""
        findings = [(each, self._kept_back(each, reason)) for each in tenants]
        self._tenants.note(findings)
        return bool(findings)

    def lose(self, lost: Collection[str], leaderless: Collection[str]) -> None:
        """Topics are not there any more, or have a partition without a leader."""
        for topic in lost:
            on_it = self._tenants.on(topic)
            self.state.unready(each.name for each in on_it)
            if topic in leaderless:
                self.hold(on_it, OFFLINE)
            self.state.close([topic])

    def _kept_back(self, tenant: Tenant, reason: str) -> TenantFacts:
        # The thread that makes a topic tells what became of it: that needs no other look.
        # A leader comes back with its broker, and all that was due meanwhile waits for this look.
        made, now_s = reason == TO_MAKE, machine.monotonic()
        self.state.keep_back(
            tenant.name, tenant.topic, None if made else now_s, grows=reason != OFFLINE
        )
        if not made and tenant.held in ("", TO_MAKE) and not self._told(tenant, reason):
            log.warning("tenant held: its events wait", tenant=tenant.name, reason=reason)
        return {"held": reason}

    def _told(self, tenant: Tenant, reason: str) -> bool:
        """Whether it was logged of others on the shared topic: they may be a hundred thousand."""
        if not tenant.shared:
            return False
        before, self._shared_told = self._shared_told, reason
        return before == reason

    def _let_go(self, tenant: Tenant) -> TenantFacts:
        self.state.let_go(tenant.name)
        if not tenant.held:
            return {}
        if tenant.held != TO_MAKE and not self._told(tenant, ""):
            log.info("tenant released", tenant=tenant.name)
        return {"held": ""}
