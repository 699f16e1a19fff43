"""Policies of tenants, as an operator sees them: written to and read from `belfry.tenants`.

Workers follow the topic, so a policy that Kafka has confirmed is in effect within two seconds.  A
policy is replaced as a whole; `policy_fields.py` works out the new policy after a change of some
fields.

    before = policies.get("shop") or TenantPolicy("shop")
    policies.put(changed(before, {"max_pending": 100_000}, used=True))

Two operators who change one tenant at the same moment overwrite each other: the last record counts.
Reading goes through the whole topic, which is compacted and holds a record for each tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import TopicPartition

from belfry.client.decoding import Decoder
from belfry.client.errors import Unavailable
from belfry.client.kafka import NO_GROUP, Cluster
from belfry.client.policy_fields import BadPolicy, conflicts
from belfry.client.policy_writing import PolicyWriter, log_bounds
from belfry.kafka.record_headers import headers_of
from belfry.tenants.policy import TenantPolicy, problems
from belfry.tenants.shredding import KeyToDestroy, key_to_destroy
from belfry.tenants.topic_names import TopicNames, taken_topics
from belfry.wire import framing
from belfry.wire.policies import encode_policy, policy_of
from belfry.wire.policy_signatures import RecordLocation, is_signed_policy
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Keys, first

if TYPE_CHECKING:
    from belfry.client.schemas import RegisteredSchemas

NAME: Final = "TenantPolicy"
READ_S: Final = 30.0


class PolicySigning(NamedTuple):
    """The signer and verifier of policies, and whether unsigned ones count.

    The first of `keys` signs, and each of them verifies, so that a secret can be changed. With
    `required` a policy without a signature is as if it were not there.
    """

    keys: Keys = ()
    required: bool = False


class TenantPolicies:
    """Reads and writes the policies of one belfry.

    Each call connects, asks and closes, and blocks meanwhile. `prefix` is that of all topics.
    """

    def __init__(
        self,
        cluster: Cluster,
        prefix: str,
        schemas: RegisteredSchemas | None = None,
        signing: PolicySigning = PolicySigning(),  # noqa: B008  # a value that never changes
    ) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._topic = prefix + "tenants"
        self._schemas = schemas
        self._signing = signing
        self._writer = PolicyWriter(cluster, self._topic, first(signing.keys))
        # Tenants whose only policy has no good signature, as of the last reading.
        self._unsigned: set[str] = set()
        # Whose former policies are kept in a reading, and these.
        self._history: tuple[str, list[TenantPolicy]] = "", []
        self._decoder = Decoder(NAME, None if schemas is None else schemas.writer, only=True)

    def all(self) -> dict[str, TenantPolicy]:
        """Every tenant's policy by name; raises `Unavailable` where they cannot be read.

        All of them: a change based on the visible policies alone could undo one that an open
        transaction hides.
        """
        found: dict[str, TenantPolicy] = {}
        self._unsigned = set()
        consumer = self._cluster.consumer(NO_GROUP)
        try:
            # A client that knows the leaders and offsets reads at once, and not in half a second.
            bounds = self._bounds(self._cluster.partitions(consumer, self._topic))
            consumer.assign(
                [TopicPartition(self._topic, each, low) for each, (low, _) in bounds.items()]
            )
            ends = {each: high for each, (_, high) in bounds.items()}
            deadline = monotonic() + READ_S
            while ends:
                if monotonic() > deadline:
                    raise Unavailable(
                        f"{self._topic} was not read to its end in {READ_S:.0f} s. If a transaction"
                        " is open there, `belfry doctor` says whose it is and how to end it."
                    )
                self._take(consumer, found, ends)
        finally:
            consumer.close()
        return dict(sorted(found.items()))

    def get(self, tenant: str) -> TenantPolicy | None:
        """The policy of a tenant, or None for one that has none.

        `BadPolicy` where there is one that no worker carries out, because it is not signed.
        """
        found = self.all().get(tenant)
        if found is None and tenant in self._unsigned:
            raise BadPolicy(
                f"The policy of {tenant} is not signed, so no worker carries it out. Look at it"
                " with BELFRY_POLICIES=trusted `belfry tenant get`; `belfry tenant sign` makes it"
                " yours, `belfry tenant set --file` replaces it."
            )
        return found

    def history(self, tenant: str) -> list[TenantPolicy]:
        """The policies of a tenant that the topic still has, the oldest first.

        Compaction removes replaced and removed policies at an unknown time.
        """
        found: list[TenantPolicy] = []
        self._history = tenant, found
        self.all()
        self._history = "", []
        return found

    def sign(self, tenants: Sequence[str]) -> list[TenantPolicy]:
        """Sign the policies of these tenants as they stand; without a name: of all tenants.

        Raises `BadPolicy` if there is no policy to sign, or no secret to sign with.
        """
        if not self._signing.keys:
            raise BadPolicy("There is no secret to sign with: set BELFRY_HTTP_WORKER_SECRET.")
        trusting = TenantPolicies(self._cluster, self._prefix, self._schemas)
        known = trusting.all()
        missing = [name for name in tenants if name not in known]
        if missing:
            raise BadPolicy(f"These tenants have no policy: {', '.join(missing)}.")
        chosen = [known[name] for name in tenants or known]
        frame = self._frame()
        self._writer.write({each.tenant: frame + encode_policy(each) for each in chosen})
        return chosen

    def put(
        self, *policies: TenantPolicy, share_topic: bool = False, reason: str | None = None
    ) -> None:
        """Write policies; raises `BadPolicy` before anything is written.

        With `share_topic` one may name the `output_topic` of another tenant's policy. `reason` says
        why, for the audit log: each record carries it as a header.
        """
        wrong = [f"{each.tenant}: {why}" for each in policies for why in self._problems(each)]
        before = self.all()
        wrong += [] if share_topic else taken_topics(before, policies)
        wrong += conflicts(before, policies)
        if wrong:
            raise BadPolicy(" ".join(wrong))
        frame = self._frame()
        values = {each.tenant: frame + encode_policy(each) for each in policies}
        self._writer.write(values, reason)

    def _problems(self, policy: TenantPolicy) -> Iterator[str]:
        """The mistakes in a policy by itself, without regard to others."""
        yield from problems(policy)
        reserved = TopicNames(self._prefix).problem(policy.tenant, policy.output_topic)
        if reserved is not None:
            yield reserved

    def remove(self, tenant: str, *, reason: str | None = None) -> None:
        """Forget a tenant's policy; the tenant is treated by the defaults then. `removal_problem`
        first.
        """
        self._writer.write({tenant: None}, reason)

    def to_destroy(self, removed: TenantPolicy | None) -> KeyToDestroy | None:
        """The secret that a removed policy leaves to its operator, who has to destroy it.

        None if its payloads were not encrypted.
        """
        if removed is None or removed.payload_key_ref is None:
            return None
        return key_to_destroy(removed, self.all().values())

    def is_known(self, tenant: str) -> bool:
        """Whether the tenant may have schedules: its topic of fired events exists."""
        admin = self._cluster.admin()
        return f"{self._prefix}fired.{tenant}" in self._cluster.reach(admin).topics

    def _frame(self) -> bytes:
        """The first bytes of a record: Confluent's prefix, or that of Avro's single-object
        encoding.
        """
        if self._schemas is None:
            return framing.single_object(NAME)
        return self._schemas.prefix(self._topic, NAME)

    def _is_signed(self, message: Any, headers: Headers | None) -> bool:
        """Whether a record carries a signature that holds at its very offset."""
        location = RecordLocation(self._topic, message.partition(), message.offset())
        record = message.key() or b"", message.value(), headers
        return is_signed_policy(self._signing.keys, location, record)

    def _bounds(self, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Where non-empty partitions begin and end, open transactions included."""
        with closing(self._cluster.consumer(NO_GROUP, uncommitted=True)) as consumer:
            bounds = {each: log_bounds(consumer, self._topic, each) for each in partitions}
        return {each: (low, high) for each, (low, high) in bounds.items() if high > low}

    def _take(self, consumer: Any, found: dict[str, TenantPolicy], ends: dict[int, int]) -> None:
        """Fold some records, and take partitions that are read to their ends out of `ends`."""
        first = consumer.poll(0.1)
        messages = [] if first is None else [first, *consumer.consume(1_000, 0)]
        records = [each for each in messages if each.error() is None]
        for message, headers in zip(records, headers_of(records), strict=True):
            name = (message.key() or b"").decode(errors="replace")
            value = message.value()
            if self._signing.required and not self._is_signed(message, headers):
                self._unsigned.add(name)
                continue
            self._unsigned.discard(name)
            record = None if value is None else self._decoder.record(value, headers)
            found.pop(name, None)
            if record is not None:
                found[name] = policy_of(record)
                if name == self._history[0]:
                    self._history[1].append(found[name])
        for place in consumer.position([TopicPartition(self._topic, p) for p in ends]):
            if place.offset >= ends[place.partition]:
                del ends[place.partition]
