"""The plan of a recovery from the evidence, and the losses of it, in words.

    evidence + choices ─► Plan: the base (a copy, the log, or nothing), manifest, identity, position

Nothing is chosen for the operator: a choice that the evidence asks for and that was not made is a
refusal that names it.

An example. Local state has read up to transaction 950, and an unclean election has cut the
changelog off behind 940:

    --from local   rows of the copy are written again, under a number behind 950; the input goes on
                   where 950 stood; what fired after the copy was written fires again
    --from log     goes on behind 940; what 941 to 950 took in is read again from the input, and
                   what they fired fires again

Both get the next *generation*. A copy of a lower one is superseded: a worker that comes back with
it rebuilds its state, and does not take it for the newer one.

It is pure: `recovery_write.py` carries the plan out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from belfry.recovery.partition_evidence import CannotRecover, Copy, PartitionEvidence
from belfry.schedules.instants import format_instant
from belfry.store.identity import Identity, differ
from belfry.store.layout.groups import LIES_END, LIES_PREFIX, NOWHERE, decode_group, group_of
from belfry.store.layout.manifests import Manifest

# Where the state comes from, as --from says it.
LOCAL = "local"
LOG = "log"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Choices:
    """The choice of the operator: where the state comes from, and which losses are accepted."""

    source: str | None = None
    # By partition, the first and the last offset of requests that are given up.
    accept_lost: dict[int, tuple[int, int]] = field(default_factory=dict)
    accept_input: bool = False
    # Name of the file that is restored afterwards; here it is told, and not read.
    backup: str | None = None


@dataclass(slots=True)
class RecoveryPlan:
    """The writes for one partition; `lines` tell them."""

    partition: int
    # LOCAL, LOG or NOTHING; `copy` is the store where it is LOCAL.
    base: str
    copy: Copy | None
    # The last transaction that the recovered state knows of.
    before: Manifest | None
    # The offset of the input at which requests are read on.
    position: int
    identity: Identity
    # Whether all rows are written again, or only a manifest with another position.
    rewrites: bool
    # Whether rows tell of places in an input that is gone.
    earlier_input: bool
    lines: list[str]


def anchor_behind(found: PartitionEvidence) -> Identity | None:
    """The content that the anchor of a partition lacks; None where nothing is to be done.

    Where nothing contradicts, and no evidence is of a later recovery than the changelog.
    """
    logged = found.identity
    if found.problem is not None or logged is None or logged.generation != found.generation:
        return None
    return None if found.anchor == logged else logged


def plan(found: PartitionEvidence, choices: Choices) -> RecoveryPlan:
    """What to do about a partition that has a problem; CannotRecover where a choice is missing.

    Of several copies the one of the newest generation counts, and of these the one with the last
    transaction.
    """
    assert found.problem is not None, "nothing contradicts"
    base, copy = _base(found, choices)
    _check_groups(found, base, copy)
    lines = [_base_line(found, base, copy, choices)]
    before = copy.manifest if copy is not None else None if base == NOTHING else found.logged
    was = copy.identity if copy is not None else found.identity
    position, earlier = found.end, False
    if base == NOTHING:
        lines.append(
            f"requests up to offset {found.end - 1} of the input are given up; those from"
            f" {found.low} on can still be read there, and asked for again"
        )
    else:
        assert before is not None
        position, earlier = _position(found, was, before.position, choices, lines)
    rewrites = (
        base == NOTHING or copy is not None or earlier or found.problem.code == "hole_in_changelog"
    )
    recovered = rewrites or (base == LOG and choices.source == LOG)
    generation = found.generation + (1 if recovered else 0)
    return RecoveryPlan(
        found.partition,
        base,
        copy,
        before,
        position,
        found.here._replace(generation=generation),
        rewrites,
        earlier,
        lines,
    )


def _base(found: PartitionEvidence, choices: Choices) -> tuple[str, Copy | None]:
    """The source of the state: `log`, `nothing`, or `local` and which copy."""
    assert found.problem is not None
    if choices.source == LOCAL:
        if not found.copies:
            raise CannotRecover(
                "no usable local state in the data directories; give others with --data-dir"
            )
        return LOCAL, max(found.copies, key=_newest)
    if choices.source == NOTHING:
        return NOTHING, None
    accepts = found.problem.code in ("requests_lost", "input_anew", "input_truncated")
    if choices.source is None and not accepts:
        raise CannotRecover(f"choose: {found.problem.choices}")
    if found.logged is None:
        raise CannotRecover("the changelog holds nothing to recover from; " + found.problem.choices)
    return LOG, None


def _check_groups(found: PartitionEvidence, base: str, copy: Copy | None) -> None:
    """Raise CannotRecover where rows of key groups would come back, or be gone, by this base.

    A group that has left lies in another partition by now, which a copy of before does not know.
    """
    manifests = found.logged, None if copy is None else copy.manifest
    if not any(each is not None and each.grouped for each in manifests):
        return
    if base != LOG:
        raise CannotRecover(
            "key groups have moved to or from this partition, so what another one has by now could"
            " come back with a copy, and fire twice, or be gone: recover with `--from log`, or"
            " bring the groups home before"
        )
    for key, row in found.store.between(LIES_PREFIX, LIES_END):
        if decode_group(row).to != NOWHERE:
            raise CannotRecover(
                f"a key group is on its way (group {group_of(key)}): some of its schedules may lie"
                " in the requests, of which a recovery gives some up; nothing was changed"
            )


def _newest(copy: Copy) -> tuple[int, int]:
    return copy.generation, copy.manifest.txn_seq


def _base_line(found: PartitionEvidence, base: str, copy: Copy | None, choices: Choices) -> str:
    """The source of the state, and the losses by that choice, in a sentence."""
    if copy is not None:
        return (
            f"state of {copy.path}: {copy.manifest.pending} schedules that wait, transaction"
            f" {copy.manifest.txn_seq}, written {format_instant(copy.written_ms)}; what fired"
            " after that fires again, and what was asked after it is read again from the input"
        )
    if base == NOTHING:
        then = "" if choices.backup is None else f"; then `belfry restore {choices.backup}`"
        return f"no state: no schedule waits, and nothing is known to have fired{then}"
    assert found.logged is not None
    told = f"state of the changelog: transaction {found.logged.txn_seq}"
    ahead = [copy for copy in found.copies if copy.manifest.txn_seq > found.logged.txn_seq]
    if not ahead:
        return told
    newest = max(copy.manifest.txn_seq for copy in ahead)
    return (
        f"{told}; what transactions {found.logged.txn_seq + 1} to {newest} did is given up: what"
        " they took in is read again from the input, and what they fired fires again"
    )


def _position(
    found: PartitionEvidence,
    was: Identity | None,
    position: int,
    choices: Choices,
    lines: list[str],
) -> tuple[int, bool]:
    """Where to go on in the input, and whether it is another one than before."""
    anew = was is not None and differ(was.schedules, found.here.schedules)
    if anew or position > found.end:
        if not choices.accept_input:
            raise CannotRecover(
                "the input is not the one that was read; say --accept-input to go on in it"
            )
        shorter = was is not None and not anew
        start = found.end if shorter else found.low
        lines.append(
            f"requests are read from offset {start} of the present input; of the one before,"
            f" which had been read up to offset {position}, nothing more is taken in"
        )
        return start, True
    if position >= found.low:
        lines.append(f"requests are read on from offset {position}")
        return position, False
    given = choices.accept_lost.get(found.partition)
    lost = position, found.low - 1
    if given != lost:
        raise CannotRecover(
            f"requests {lost[0]} to {lost[1]} are gone before they were read; accept exactly that"
            f" with --accept-lost {found.partition}:{lost[0]}-{lost[1]}"
        )
    lines.append(f"requests {lost[0]} to {lost[1]} are given up as lost")
    return found.low, False
