"""Policies of tenants: the compacted topic `belfry.tenants`, read to its end and then followed.

A worker fires nothing before it has read all policies that were readable at its start (`start`). At
each take-over it reads up to the present end again (`catch_up`), so that it never treats a tenant
by older policies than its predecessor did.  Readers stop at the last stable offset, where a
transaction is open, and so did the predecessor: records behind that count for no worker before the
transaction has ended.  A change reaches every worker with the next fetch.

Policies are kept as bytes (`stored_policies`), and carried out for those tenants that this worker
has met.  A policy that cannot be carried out yet is tried again in the next round; no other
tenant's policy waits for it.

    12:00:00.000   an operator pauses `shop`: record 55 in belfry.tenants
    12:00:00.110   the follower has it; `shop` was met here, so its policy is carried out
    12:00:00.111   the directory has another snapshot
    12:00:00.130   a step that began before ends by the old policy; the next one uses the new

And at a take-over, where a predecessor may have known more than this worker does:

    fence ─► catch_up: ask for the ends of the topic, wait until they are read ─► fire

Threads: one reads and carries out.  Any thread may ask for stored policies, and wait in `catch_up`
(`policy_topic`) until the first one has read on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from belfry.host import machine
from belfry.host.background import Background
from belfry.host.passing import PassThrough, at_once
from belfry.kafka.changelog_sieve import uncounted
from belfry.outputs.readiness import Outputs
from belfry.policies.policy_topic import CATCH_UP_S, WAIT_S, PolicyTopic
from belfry.policies.stored_policies import Stored, StoredPolicies
from belfry.registry.client import Registry
from belfry.settings import Settings
from belfry.telemetry.limited import LimitedLogger
from belfry.tenants.directory import Tenants
from belfry.wire.policy_signatures import RecordLocation, is_signed_policy
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose

log = structlog.get_logger(__name__)


class Policies:
    """The thread that follows policies; `stored` are those that it has read."""

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        outputs: Outputs,
        registry: Registry | None,
        counted: Callable[[str, int], None] = uncounted,
        through: PassThrough = at_once,
    ) -> None:
        """`counted` gets the numbers of records without a signature of belfry's, by topic.

        Records pass `through` an agent of Faust, so that its sensors see them.  From now on the
        directory asks `stored` for the policy of each tenant that it meets.
        """
        self._through = through
        self._tenants = tenants
        self._outputs = outputs
        self.stored = StoredPolicies(settings, tenants, registry)
        self._topic = PolicyTopic(settings)
        self._keys = settings.worker_keys(Purpose.POLICIES) if settings.policies == "signed" else ()
        self._counted = counted
        # Tenants whose policy was read, and is not yet carried out.
        self._unapplied: set[str] = set()
        self._faults = LimitedLogger(log)
        self._thread = Background("policies", self._read, log, "policies not read", again_s=WAIT_S)
        tenants.effective_of = self.stored.effective_of

    def start(self) -> None:
        """Read all policies, then follow; blocks until they are read.

        Raises ConnectionError where the topic is not read to its end in about `CATCH_UP_S`.
        """
        started = machine.monotonic()
        self._topic.assign()
        self._thread.start()
        self._catch_up_patiently(started + CATCH_UP_S)
        log.info("policies read", policies=len(self.stored), seconds=machine.monotonic() - started)

    def catch_up(self) -> None:
        """Wait until all policies that are readable now have been read; else ConnectionError.

        Called at each take-over by the thread of the partition, and by HTTP before it writes.
        """
        self._topic.catch_up()

    def _catch_up_patiently(self, deadline: float) -> None:
        """Catch up, trying until the deadline: leaders of a new topic may not know it yet."""
        while True:
            try:
                return self.catch_up()
            except ConnectionError:
                if machine.monotonic() > deadline:
                    raise
            self._thread.stopping.wait(WAIT_S)

    def stop(self) -> None:
        """Stop following."""
        self._thread.stop()
        self._topic.close()

    # -- the thread ------------------------------------------------------------------------------

    def _read(self) -> None:
        batch = self._topic.read()
        if batch is None:
            self._carry_out(self._unapplied | self.stored.found_keys())
            return
        if batch.records:
            place = self._topic.name, batch.partition, batch.records[0][0]
            if not self._through(*place, self._thread.stopping):
                return
        changed: dict[str, Stored | None] = {}
        blocked: list[str] = []
        for offset, _, key, value, headers in batch.records:
            name, location = (key or b"").decode(errors="replace"), (batch.partition, offset)
            if self._keys and not self._is_signed(location, (key or b"", value, headers)):
                self._refuse(name, location)
                if not changed.get(name, name in self.stored):
                    self.stored.distrust(name, None if value is None else (value, headers))
                    blocked.append(name)
                continue
            self.stored.trust(name)
            changed[name] = None if value is None else (value, headers)
        self._apply(changed)
        self._carry_out(blocked)
        self._topic.passed(batch)

    def _is_signed(
        self, location: tuple[int, int], record: tuple[bytes, bytes | None, Headers | None]
    ) -> bool:
        return is_signed_policy(self._keys, RecordLocation(self._topic.name, *location), record)

    def _refuse(self, name: str, location: tuple[int, int]) -> None:
        """Report a policy without a signature of belfry's; the policy in force stays in force.

        The record is counted and logged, with its place, and never carried out in part.
        """
        self._counted(self._topic.name, 1)
        self._faults.warning(
            "unsigned",
            "a policy is not carried out: its record has no valid signature for its place",
            tenant=name[:100],
            partition=location[0],
            offset=location[1],
            to_do="look at it; `belfry tenant sign` makes it yours",
        )

    def _apply(self, changed: dict[str, Stored | None]) -> None:
        self.stored.put(changed)
        there = {name for name in changed if name in self.stored}
        self._tenants.note_policies(there, changed.keys() - there)
        self._carry_out([*changed, *(self._unapplied - changed.keys())])

    def _carry_out(self, names: Iterable[str]) -> None:
        """Carry out the policies of tenants; a failure is tried again in the next round.

        The record is passed all the same: no other policy waits for the failure of one. Such a
        failure is a registry that does not answer: it has the schema of the tenant's envelopes.
        """
        for name in self._met(names):
            try:
                self._outputs.apply(self.stored.effective_of(name) or self._tenants.defaults(name))
            except Exception as error:  # noqa: BLE001  # whatever it is, the others go on
                self._unapplied.add(name)
                self._faults.warning(
                    "policy", "policy not applied yet", tenant=name, problem=str(error)
                )
            else:
                self._unapplied.discard(name)

    def _met(self, names: Iterable[str]) -> list[str]:
        """Those of these tenants that this worker has met."""
        return [name for name in names if self._tenants.concerns(name)]
