"""Tenants are treated by their policies: sources, payloads elsewhere, keys at rest (I34 to I36).

    I34   an event says where the request lies that defined it, where the policy asks for it
    I35   a large payload lies elsewhere before a row or an event claims it, and is what was asked
    I36   payloads are kept under a key of their tenant; behind a REKEY all are under the newest

        rows      a: older key   b: older key   c: newer key
        REKEY     ───────────────────────────────────────────►  ended
        rows      a: newer key   b: newer key   c: newer key     d: newer key

Rows and events are read by the specification of their bytes, without a line of the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation.broker import Entry
from tests.simulation.bulk import Definition, JobSeen, JobsSeen
from tests.simulation.governed import LIMITS
from tests.simulation.murmur import partition_of
from tests.simulation.objects import path_of
from tests.simulation.payload_keys import HEAD_BYTES, NEW, OLD, SECRETS, head_of
from tests.simulation.payloads import CLAIM, ENCRYPTED
from tests.simulation.redriven import REJECTED
from tests.simulation.stores import PENDING, bare
from tests.simulation.trail import FIRED, REQUESTS, Step, headers_of

if TYPE_CHECKING:
    from tests.simulation.world import World

SOURCE: Final = "belfry-source"
UNSTORED: Final = "payload_not_stored"
# Of a pending record: flags, sizes of its texts, key, headers, extra and payload, then those.
_FLAGS_AT: Final = 3
_SEALED: Final = 8
_SIZES: Final = Struct(">68xBBBBiIIi")
_NAME_SIZE, _VALUE_SIZE = Struct(">H"), Struct(">i")


class Row(NamedTuple):
    """A pending record as far as payloads go; `sealed` says whether it is encrypted."""

    headers: dict[str, bytes]
    payload: bytes
    sealed: bool


def row_of(record: bytes) -> Row:
    """A pending record's bytes."""
    tenant, name, group, kind, key, headers, extra, payload = _SIZES.unpack_from(record)
    at = _SIZES.size + tenant + name + group + kind + max(key, 0)
    behind = at + headers + extra
    found = record[behind : behind + max(payload, 0)]
    sealed = bool(record[_FLAGS_AT] & _SEALED)
    return Row(dict(_headers(record[at : at + headers])), found, sealed)


def _headers(told: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(told):
        (size,) = _NAME_SIZE.unpack_from(told, at)
        at += _NAME_SIZE.size
        name = told[at : at + size].decode()
        (length,) = _VALUE_SIZE.unpack_from(told, at + size)
        at += size + _VALUE_SIZE.size
        yield name, told[at : at + max(length, 0)]
        at += max(length, 0)


def check_treated(
    world: World, partitions: list[list[Step]], jobs: JobsSeen, known: Mapping[str, Definition]
) -> list[str]:
    """All that is wrong with how tenants with a policy were treated."""
    problems: list[str] = []
    for steps in partitions:
        for step in steps:
            for topic, entry in step.fired:
                problems += _event(world, (topic.removeprefix(FIRED), step), entry, known)
            for entry in step.rows:
                problems += _row(world, entry)
    for job in jobs.jobs():
        if job.rekeys and job.ended_in is not None and not job.is_stopped:
            problems += _rekeyed(world, partitions, job)
    return problems


def struck_by_policies(world: World) -> list[str]:
    """What policies have brought about in a world, each as often as it was."""
    refused = [headers_of(entry)["belfry-error-code"] for entry in world.committed(REJECTED)]
    fired = [topic for topic in world.broker.topics if topic.startswith(FIRED)]
    read = [headers_of(entry) for topic in fired for entry in world.committed(topic)]
    counts = {
        "payload refused": refused.count(UNSTORED.encode()),
        "payload elsewhere": sum(CLAIM in headers for headers in read),
        "source told": sum(SOURCE in headers for headers in read),
        "key renewed": len(world.policies.renewed),
        "refused beyond a limit": sum(refused.count(code.encode()) for code in LIMITS),
    }
    struck = world.objects.struck + world.changes.struck
    return struck + [name for name, times in counts.items() for _ in range(times)]


def _event(
    world: World, where: tuple[str, Step], entry: Entry, known: Mapping[str, Definition]
) -> Iterator[str]:
    """What is wrong with an event as its consumer reads it."""
    tenant, step = where
    rules, payload, headers = world.policies.of(tenant), entry.value or b"", headers_of(entry)
    definition = known.get(payload.decode())
    if definition is None:
        # Told of by the check of what fired.
        return
    told = headers.get(SOURCE)
    wanted = b"%b/%d/%d" % (REQUESTS.encode(), step.partition, definition.seq)
    if told != (wanted if rules.source else None):
        yield f"I34 {definition.sent.name} says {told!r}, and comes from {wanted!r}"
    if (CLAIM in headers) is not rules.is_large(payload):
        yield f"I35 {definition.sent.name} fired with {'a' if CLAIM in headers else 'no'} claim"
    yield from _claim(world, tenant, headers, entry)


def _row(world: World, entry: Entry) -> Iterator[str]:
    """What is wrong with a row of a schedule that waits."""
    key, record = entry.key or b"", bare(entry.value or b"")
    if key[:1] == b"\0" or record[1:2] != bytes([PENDING]):
        return
    tenant, row = key.partition(b"/")[0].decode(), row_of(record)
    named = f"the row of {key.decode()} at {entry.offset}"
    for what in _claim(world, tenant, row.headers, entry):
        yield f"{what} ({named})"
    keys = set(world.policies.keys_over_time(tenant))
    if row.payload and row.sealed is (None in keys) and len(keys) == 1:
        yield f"I36 {named} is encrypted: {row.sealed}; keys: {keys}"
    secrets = {secret for each in keys if each is not None for secret in SECRETS[each]}
    heads = [head_of(secret, tenant) for secret in secrets]
    if row.sealed and row.payload[:HEAD_BYTES] not in heads:
        yield f"I36 {named} is under no key of its tenant"


def _claim(world: World, tenant: str, headers: Mapping[str, bytes], entry: Entry) -> Iterator[str]:
    """Whether what is claimed was there before the claim was written."""
    if CLAIM not in headers:
        return
    digest = headers[CLAIM].decode()
    since = world.objects.since.get(path_of(tenant, digest))
    if since is None or since >= entry.order:
        yield f"I35 {tenant}: {digest[:8]} is claimed, and was not stored by then"
    keys = set(world.policies.keys_over_time(tenant))
    if len(keys) == 1 and (ENCRYPTED in headers) is (None in keys):
        yield f"I36 {tenant}: {digest[:8]} is encrypted: {ENCRYPTED in headers}; keys: {keys}"


def _rekeyed(world: World, partitions: list[list[Step]], job: JobSeen) -> Iterator[str]:
    """What a job has left under another key than the newest, when it ended."""
    tenant = job.sent.tenant
    newest = head_of(SECRETS[NEW][0], tenant)
    begin = f"{tenant}/{job.spec['prefix']}".encode()
    waits: dict[bytes, bytes] = {}
    for step in partitions[partition_of(tenant.encode(), world.scenario.partitions)]:
        if step.index > (job.ended_in or 0):
            break
        for entry in step.rows:
            if (entry.key or b"").startswith(begin):
                waits[entry.key or b""] = bare(entry.value or b"")
    for name, record in waits.items():
        if record[1:2] == bytes([PENDING]):
            row = row_of(record)
            if row.payload and not (row.sealed and row.payload[:HEAD_BYTES] == newest):
                older = row.payload[:HEAD_BYTES] == head_of(SECRETS[OLD][0], tenant)
                yield f"I36 {job.sent.name} left {name.decode()} {'older' if older else 'plain'}"
