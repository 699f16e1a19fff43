"""Policies of tenants: the compacted topic `belfry.tenants`, read to its end and then followed.

A worker fires nothing before it has read all policies that could be read when it asked (`start`),
and asks again whenever it has taken a partition over (`catch_up`), so that it never treats a tenant
by less than its predecessor knew.  Readers stop at the last stable offset, where a transaction is
open, and so did the predecessor: records behind it count for nobody before it has ended.  A change
reaches every worker with the next fetch.

A policy stays bytes until its tenant is met: most of a hundred thousand tenants have nothing to do
with this worker.  A policy that this release would not carry out as meant stops its tenant's fires,
visibly, instead of being applied in part.

    12:00:00.000   `shop` is paused by somebody: record 55 in belfry.tenants
    12:00:00.110   the follower has it; `shop` was met here, so its policy is carried out
    12:00:00.111   the directory has another snapshot
    12:00:00.130   a step that began before ends by the old policy; the next one goes by the new

And at a take-over, where a predecessor may have known more than this worker does:

    fence ─► catch_up: ask for the ends of the topic, wait until they are read ─► fire

Threads: one reads and carries out; `effective_of`, `policy` and `names` answer any thread from a
dictionary whose values are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from belfry.client.decoding import Decoder
from belfry.host.background import Background
from belfry.host.passing import PassThrough, all_pass, at_once
from belfry.kafka.changelog_sieve import uncounted
from belfry.kafka.record_headers import headers_of
from belfry.outputs.readiness import Outputs
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.registry.client import Registry
from belfry.registry.subjects import look_in
from belfry.schedules.rejections import Rejection
from belfry.settings import Settings
from belfry.telemetry.limited import LimitedLogger
from belfry.tenants.canary import CANARY, CANARY_TOPIC, canary_policy
from belfry.tenants.deliveries import RETRIES, retry_policy
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy, problems
from belfry.wire.policies import policy_of
from belfry.wire.policy_signatures import RecordLocation, is_signed_policy
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose

READ_RECORDS: Final = 10_000
WAIT_S: Final = 0.2
REQUEST_S: Final = 10.0
CATCH_UP_S: Final = 30.0

log = structlog.get_logger(__name__)

Stored = tuple[bytes, Headers | None]


class Policies:
    """All policies, and the thread that follows them.

    `closed` says that tenants without a policy are not served.  A hundred thousand policies take
    their bytes and a dictionary's entry each; they are decoded when their tenants are met.
    """

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        outputs: Outputs,
        registry: Registry | None,
        counted: Callable[[str, int], None] = uncounted,
        through: PassThrough = at_once,
    ) -> None:
        """`counted` is told of records that nobody of belfry signed, by topic.

        What is read comes `through` an agent of Faust, so that its sensors see it.  From here on
        the directory asks this object for the policy of each tenant that it meets.
        """
        self._through = through
        self._tenants = tenants
        self._outputs = outputs
        self.closed = settings.unknown_tenants == "closed"
        self._topic = settings.topic("tenants")
        self._deliveries = settings.topic("deliveries")
        self._canary = settings.topic(CANARY_TOPIC)
        self._places = SecretPlaces(settings.secrets_dir)
        self._decoder = Decoder("TenantPolicy", look_in(registry), only=True)
        self._stored: dict[str, Stored] = {}
        self._keys = settings.worker_keys(Purpose.POLICIES) if settings.policies == "signed" else ()
        self._counted = counted
        # Tenants of whom nothing but unsigned policies is known: none of them is carried out.
        self._unsigned: set[str] = set()
        # Tenants whose policy was read, and who are not yet treated by it.
        self._unapplied: set[str] = set()
        self._faults = LimitedLogger(log)
        self._positions: dict[int, int] = {}
        self._properties = {
            "fetch.wait.max.ms": 100,
            **settings.kafka_properties(),
            "group.id": "belfry-reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        self._consumer = Consumer(self._properties)
        self._moved = Event()
        self._thread = Background("policies", self._read, log, "policies not read", again_s=WAIT_S)
        tenants.effective_of = self.effective_of

    def start(self) -> None:
        """Read all policies, then follow; blocks until they are read.

        Raises ConnectionError where the topic is not read to its end in about `CATCH_UP_S`.
        """
        started = monotonic()
        partitions = self._consumer.list_topics(self._topic, REQUEST_S).topics[self._topic]
        self._positions = dict.fromkeys(partitions.partitions, 0)
        self._consumer.assign(
            [TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in self._positions]
        )
        self._thread.start()
        self._catch_up_patiently(started + CATCH_UP_S)
        log.info("policies read", policies=len(self._stored), seconds=monotonic() - started)

    def _catch_up_patiently(self, deadline: float) -> None:
        """A topic that was made this moment has leaders that do not know it yet."""
        while True:
            try:
                return self.catch_up()
            except ConnectionError:
                if monotonic() > deadline:
                    raise
            self._thread.stopping.wait(WAIT_S)

    def stop(self) -> None:
        """Follow no more."""
        self._thread.stop()
        self._consumer.close()

    def catch_up(self) -> None:
        """Wait until all that can be read now has been read; ConnectionError if it is not.

        Called at each take-over by the thread of the partition, and by HTTP before it writes.
        """
        ends = self._ends()
        deadline = monotonic() + CATCH_UP_S
        while any(self._positions[each] < end for each, end in ends.items()):
            if monotonic() > deadline:
                raise ConnectionError(f"{self._topic} was not read to its end in {CATCH_UP_S} s")
            self._moved.clear()
            self._moved.wait(WAIT_S)

    def names(self) -> list[str]:
        """Tenants that have a policy, in the order of their names; costs a sort of all of them."""
        return sorted(self._stored.copy())

    def effective_of(self, name: str) -> EffectivePolicy | None:
        """How a tenant of this name is treated; None for the defaults.

        The directory asks this for each tenant that it meets for the first time (`tenants/`).
        """
        if name == RETRIES:
            # belfry's own: retries of deliveries are its schedules, whatever the topic says.
            return EffectivePolicy(retry_policy(self._deliveries))
        if name == CANARY:
            return EffectivePolicy(canary_policy(self._canary))
        stored = self._stored.get(name)
        if stored is not None:
            return self._effective(name, stored)
        if name in self._unsigned:
            return self._tenants.defaults(name)._replace(blocked=UNSIGNED)
        if not self.closed:
            return None
        return self._tenants.defaults(name)._replace(refused=_unknown(name), blocked=UNKNOWN)

    def policy(self, name: str) -> TenantPolicy | None:
        """The policy that a tenant is treated by; None for one that has none.  No secret is read.

        For one that cannot be carried out these are the defaults, for so its tenant is treated;
        `problem` says why.
        """
        stored = self._stored.get(name)
        if stored is None:
            return None
        policy, why = self._read_policy(name, stored)
        return self._tenants.defaults(name).policy if why or policy is None else policy

    def problem(self, name: str) -> str:
        """Why a tenant's policy is not carried out as it was written; empty where it is.

        HTTP tells it to a caller who is about to change that policy.
        """
        stored = self._stored.get(name)
        if stored is None:
            return UNSIGNED if name in self._unsigned else ""
        return self._read_policy(name, stored)[1]

    def _effective(self, name: str, stored: Stored) -> EffectivePolicy:
        policy, why = self._read_policy(name, stored)
        if policy is None or why:
            log.error("policy not applied: the tenant's events wait", tenant=name, reason=why)
            return self._tenants.defaults(name)._replace(blocked=why)
        secrets = self._secrets(policy)
        if policy.removed:
            return EffectivePolicy(policy, _removed(name), REMOVED, secrets)
        return EffectivePolicy(policy, secrets=secrets)

    def _read_policy(self, name: str, stored: Stored) -> tuple[TenantPolicy | None, str]:
        """A policy as it was written, and why it cannot be carried out; empty if it can."""
        record = self._decoder.record(*stored)
        if record is None:
            return None, "its policy cannot be carried out: its record is no TenantPolicy."
        policy = policy_of(record)
        found = problems(policy)
        if policy.tenant != name:
            found.append(f"it is about tenant {policy.tenant[:100]!r}, under another's key.")
        reserved = self._tenants.names.problem(policy.tenant, policy.output_topic)
        if reserved is not None:
            found.append(reserved)
        return policy, f"its policy cannot be carried out: {' '.join(found)}" if found else ""

    def _secrets(self, policy: TenantPolicy) -> tuple[bytes, ...]:
        """The secrets that the tenant may sign with; none where they cannot be read."""
        if policy.signing_secret_ref is None:
            return ()
        try:
            return self._places.read(policy.signing_secret_ref)
        except BadSecret as error:
            log.critical(
                "a tenant's secret cannot be read: its requests are refused",
                tenant=policy.tenant, reason=str(error),
            )  # fmt: skip
            return ()

    # -- the thread ------------------------------------------------------------------------------

    def _read(self) -> None:
        first = self._consumer.poll(WAIT_S)
        if first is None:
            self._carry_out(self._unapplied.copy())
            return
        messages = [first, *self._consumer.consume(READ_RECORDS, 0.005)]
        if not all_pass(self._through, self._topic, messages, self._thread.stopping):
            return
        records = [each for each in messages if each.error() is None]
        changed: dict[str, Stored | None] = {}
        blocked: list[str] = []
        for message, headers in zip(records, headers_of(records), strict=True):
            value = message.value()
            key = (message.key() or b"").decode(errors="replace")
            if self._keys and not self._is_signed(message, headers):
                self._refuse(key, message)
                if changed.get(key, self._stored.get(key)) is None:
                    self._unsigned.add(key)
                    blocked.append(key)
                continue
            self._unsigned.discard(key)
            changed[key] = None if value is None else (value, headers)
        self._apply(changed)
        self._carry_out(blocked)
        for message in messages:
            self._pass(message)
        self._moved.set()

    def _is_signed(self, message: Any, headers: Headers | None) -> bool:
        location = RecordLocation(self._topic, message.partition(), message.offset())
        record = message.key() or b"", message.value(), headers
        return is_signed_policy(self._keys, location, record)

    def _refuse(self, name: str, message: Any) -> None:
        """Tell of a policy that nobody of belfry signed; the policy in force stays in force.

        It is counted and logged, with its place, and never carried out in part.
        """
        self._counted(self._topic, 1)
        self._faults.warning(
            "unsigned",
            "a policy is not carried out: nobody who knows the secret wrote it where it lies",
            tenant=name[:100],
            partition=message.partition(),
            offset=message.offset(),
            to_do="look at it; `belfry tenant sign` makes it yours",
        )

    def _apply(self, changed: dict[str, Stored | None]) -> None:
        for name, stored in changed.items():
            if stored is None:
                self._stored.pop(name, None)
            else:
                self._stored[name] = stored
        there = self._stored.keys() & changed.keys()
        self._tenants.note_policies(there, changed.keys() - there)
        self._carry_out([*changed, *(self._unapplied - changed.keys())])

    def _carry_out(self, names: Iterable[str]) -> None:
        """Treat tenants by their policies; a tenant that cannot be yet is tried again next round.

        The record is passed all the same: nobody else's policy waits for one tenant's trouble.
        A registry that does not answer is such a trouble: it has the schema of its envelopes.
        """
        for name in self._met(names):
            try:
                self._outputs.apply(self.effective_of(name) or self._tenants.defaults(name))
            except Exception as error:  # noqa: BLE001  # whatever it is, the others go on
                self._unapplied.add(name)
                self._faults.warning(
                    "policy", "policy not applied yet", tenant=name, problem=str(error)
                )
            else:
                self._unapplied.discard(name)

    def _met(self, names: Iterable[str]) -> list[str]:
        """Those of these tenants that this worker has to do with."""
        return [name for name in names if self._tenants.concerns(name)]

    def _pass(self, message: Any) -> None:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is None:
            self._positions[partition] = max(self._positions[partition], offset + 1)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._positions[partition] = max(self._positions[partition], offset)
        else:
            log.warning("policies not read", reason=error.str())

    def _ends(self) -> dict[int, int]:
        """Where readers stop now; asked by a client of its own, while the other one reads.

        A new one each time: one that knew a leader's epoch before the broker's restart would ask
        with it for ever, and one that is shared must not go while another thread waits for it.
        """
        asking = Consumer(self._properties)
        try:
            return {each: self._end(asking, each) for each in self._positions}
        except KafkaException as error:
            raise ConnectionError(f"{self._topic}: no answer: {error.args[0].str()}") from error
        finally:
            asking.close()

    def _end(self, asking: Consumer, partition: int) -> int:
        place = TopicPartition(self._topic, partition)
        ends = asking.get_watermark_offsets(place, REQUEST_S, cached=False)
        if ends is None:
            raise ConnectionError(f"{self._topic}: no answer within {REQUEST_S} s")
        return ends[1]


UNKNOWN: Final = "it has no policy, and unknown tenants are not served"
REMOVED: Final = "it was removed"
UNSIGNED: Final = (
    "its policy is not signed, and workers carry out signed ones alone (BELFRY_POLICIES=signed)"
)


def _unknown(name: str) -> Rejection:
    return Rejection(
        "unknown_tenant",
        f"Tenant {name!r} has no policy, and this belfry serves known tenants alone"
        f" (BELFRY_UNKNOWN_TENANTS=closed): run `belfry tenant set {name}` first.",
    )


def _removed(name: str) -> Rejection:
    return Rejection(
        "tenant_removed",
        f"Tenant {name!r} was removed; `belfry tenant set {name}` brings it back.",
    )
