"""Doubts: values that a step that differs may have depended on, and that no log tells.

A step that no attempt gives is a fault only if the attempts cover all that it can have been.  They
do not if something was held back: by whose word, in which order of turns and how much of it a step
meant to fire, is in memory of a worker alone.  Then the difference has a doubt, and an operator who
asks hears that it cannot be judged, and why.

    nothing held back, nobody late        differs
    a backlog, a lock, a job under way    cannot be judged
    a row that nobody asked for           differs, whatever else there is
    a row of a schedule that had its      differs in spite of a backlog and a lock (`tried.py`)
    turn, or that was asked for

That a row is asked for is always told: names come from requests, and which requests a step took in
is in its manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from belfry.engine.effects import Effects
from belfry.playback.comparing import is_manifest
from belfry.playback.logged import LoggedStep
from belfry.playback.played import PlayedPartition
from belfry.playback.tried import Tried
from belfry.store.layout.calendars import CALENDAR_PREFIX
from belfry.store.layout.jobs import JOB_PREFIX
from belfry.store.layout.keys import tenant_of
from belfry.store.layout.pending_bytes import is_pending, last_fires
from belfry.store.layout.verdicts import is_answer
from belfry.tenants.policy import TenantPolicy
from belfry.wire.framing import VALUE_SCHEMA_ID
from belfry.wire.record import SourceRecord

GIVEN_UP = "earlier steps fit in more ways than are played side by side, and some were given up"
TAKEN_OVER = (
    "its owner took over while something was held back, and how much of that its local state had"
    " is in no log"
)
HELD_BACK = (
    "something was held back (a backlog, a lock, a missing topic or an awaited acknowledgement):"
    " whose turn was next is in no log"
)
LATE = (
    "it fired fewer events than were due: how many it meant to fire, and whose topics it missed, is"
    " in no log"
)
WORKED = "a bulk job, a calendar or a group that was waited for: how far a step went is in no log"
AWAY = "it took requests of tenants whose large payloads lie elsewhere: when their store was away"
AWAY += " is in no log"
KEYS = "payloads are encrypted, and the keys of that time may have been others"
UNREMEMBERED = "a tenant has remember_ms=0: no row says when it fired"
LAST_FIRES = "workers keep the last fires of a schedule in its row by a setting that is in no log"
# How a value begins that has the id of its schema before its body.
PREFIX = b"\0"

SCHEMAS = (
    "requests that name schemas of a registry were taken or refused: what it said is in no log"
)
POLICIES = "compaction has removed policies that were in effect once"
# These are about turns: whose they were, and how many events a step meant to fire.
OF_TURNS: Final = frozenset({GIVEN_UP, TAKEN_OVER, HELD_BACK, LATE})


def is_sure(
    step: LoggedStep,
    tried: Tried,
    standing: Callable[[bytes], bytes | None],
    requests: Sequence[SourceRecord],
) -> bool:
    """Whether a step has a row that no worker writes, in spite of any doubt.

    Its name has no row yet, no attempt gives it one, and no request of the step names it.
    """
    if step.twice is not None:
        return True
    new = (
        key
        for key, row in step.rows.items()
        if row is not None and key[:1] != b"\0" and key not in tried.names
    )
    return any(standing(key) is None and not is_named(key, requests) for key in new)


def doubts_about(
    step: LoggedStep,
    partition: PlayedPartition,
    tried: Tried,
    effects: Effects,
    requests: Sequence[SourceRecord],
) -> Iterator[str]:
    """Why a step that differs may be no fault; none where there is no reason.

    The partition is as the step before left it, `effects` are of the nearest attempt; it took these
    `requests` in.
    """
    treatment, engine = partition.treatment, partition.engine
    waits = partition.holds_back or treatment.held or any(partition.store.awaited())
    if waits or partition.ended_early:
        yield HELD_BACK
    if tried.most_fired > step.manifest.fired:
        yield LATE
    kept = JOB_PREFIX, CALENDAR_PREFIX
    if (engine is not None and engine.jobs.under_way) or any(k.startswith(kept) for k in step.rows):
        yield WORKED
    policies = _concerned(treatment.in_effect, step, effects.rows)
    if requests and any(each.claim_check_over_bytes is not None for each in policies):
        yield AWAY
    if any(each.payload_key_ref is not None for each in policies):
        yield KEYS
    if any(not each.remember_ms for each in policies):
        yield UNREMEMBERED
    if any(map(_names_schema, requests)) and _decides_otherwise(step.rows, effects.rows):
        yield SCHEMAS
    if any(_keeps_otherwise(row, effects.rows.get(key)) for key, row in step.rows.items()):
        yield LAST_FIRES
    if treatment.lacks_policies_at(step.written_ms):
        yield POLICIES


def _concerned(
    policies: Sequence[TenantPolicy], step: LoggedStep, played: Mapping[bytes, bytes | None]
) -> list[TenantPolicy]:
    """Policies of the tenants whose schedules differ; all where anything else differs."""
    keys = [key for key in step.rows.keys() | played.keys() if not is_manifest(key)]
    apart = [key for key in keys if step.rows.get(key, b"") != played.get(key, b"")]
    if not apart or any(key[:1] == b"\0" for key in apart):
        return [*policies]
    names = {tenant_of(key).decode(errors="replace") for key in apart}
    return [each for each in policies if each.tenant in names]


def is_named(key: bytes, requests: Sequence[SourceRecord]) -> bool:
    """Whether a request may name the schedule of a row: its id stands somewhere in the record."""
    name = key.partition(b"/")[2]
    for _, _, given, value, headers in requests:
        carried = [each for _, each in headers or ()]
        if any(name in (each or b"") for each in (given, value, *carried)):
            return True
    return False


def _names_schema(request: SourceRecord) -> bool:
    """Whether a request may name a schema of a registry, in its value or in a header."""
    _, _, _, value, headers = request
    in_header = any(name == VALUE_SCHEMA_ID for name, _ in headers or ())
    return in_header or (value or b"").startswith(PREFIX)


def _decides_otherwise(
    logged: Mapping[bytes, bytes | None], played: Mapping[bytes, bytes | None]
) -> bool:
    """Whether a log has rows that an attempt has not, or the other way round, or other verdicts."""
    if any(not is_manifest(key) for key in logged.keys() ^ played.keys()):
        return True
    both = ((row, played.get(key)) for key, row in logged.items())
    return any(row and is_answer(row) and row != ours for row, ours in both)


def _keeps_otherwise(logged: bytes | None, played: bytes | None) -> bool:
    """Whether one of two rows of a schedule keeps its last fires, and the other one does not."""
    if logged is None or not played or not (is_pending(logged) and is_pending(played)):
        return False
    return bool(last_fires(logged)) != bool(last_fires(played))
