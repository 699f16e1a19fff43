"""The found fires of a transaction, and the comparison with its manifest.

A manifest has the number of the fires and a digest over their ids, in their order.

The order of rows is that of the fires, where each schedule fired once, at the instant that it
waited for.  Where one fired several times in a step, missed some before, or was replaced, rows do
not tell the order; the output does, if all events of the transaction lie in one partition of it.
If neither shows it, a digest that differs does not prove a fault, and is counted as not checked.

    manifest      4 fires, digest of a b b c: b has fired twice in one step
    by rows       a c b b     another digest, but rows do not tell the order of b
    in outputs    a b b c     all in one partition, so this is the order, and the digest is right

So three answers are there: a number that differs is a fault, a digest that differs is one where the
order is known, and all else is counted as not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from belfry.verification.extras import Ask
from belfry.verification.findings import Breach
from belfry.verification.memory import Memory
from belfry.verification.row_fires import RowFire
from belfry.verification.rows import Sealed, digest_of


class Fault(NamedTuple):
    """A breach within a transaction, at the row that shows it; offset -1: that of its manifest."""

    breach: Breach
    offset: int
    found: str
    expected: str


@dataclass(slots=True)
class FiresJudged:
    """The found fires of a transaction.

    `identities` are their ids in the order of the fires, `missing` those that an output should have
    and has not, `short_of` how many more the manifest counts.  `gone` and `unread` cannot be seen
    any more, or were not read.  `sources` are the schedules that rows name, by what they fired.
    `is_proven` says that these very identities have the digest of the manifest.
    """

    identities: list[bytes] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    missing: list[tuple[RowFire, bytes]] = field(default_factory=list)
    short_of: int = 0
    gone: int = 0
    unread: int = 0
    order_unknown: bool = False
    out_of_sight: bool = False
    is_proven: bool = False
    sources: dict[bytes, RowFire] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether something is missing that an output may show yet."""
        return bool(self.missing) or self.short_of > 0


def compare(ask: Ask, found: FiresJudged, memory: Memory, *, plain: bool) -> None:
    """Add the findings from the manifest's number and digest on the found fires.

    `plain` says that the order of the fires is known by the rows.  Where it is not, and the order
    in the outputs does not show it, a digest that differs does not prove a fault.
    """
    sealed, number = ask.sealed, len(found.identities)
    if found.short_of > 0 and (ask.unread or found.gone or found.out_of_sight):
        found.order_unknown, found.short_of = True, 0
    elif number != sealed.fired:
        said = f"{sealed.fired} fires by the manifest of transaction {sealed.number}"
        found.faults.append(Fault(Breach.COUNT, -1, said, f"{number}, by rows and outputs"))
    elif found.is_proven or has_digest(sealed, found, memory):
        return
    elif plain and not found.missing:
        said = f"digest {sealed.digest.hex()} of {number} fires in transaction {sealed.number}"
        found.faults.append(Fault(Breach.DIGEST, -1, said, digest_of(found.identities).hex()))
    elif not found.missing:
        found.order_unknown = True


def has_digest(sealed: Sealed, found: FiresJudged, memory: Memory) -> bool:
    """Whether the digest is right as they are, or in the order of an output partition.

    They are put in that order then, and are `is_proven` either way.
    """
    found.is_proven = digest_of(found.identities) == sealed.digest or _in_output_order(
        sealed, found, memory
    )
    return found.is_proven


def _in_output_order(sealed: Sealed, found: FiresJudged, memory: Memory) -> bool:
    """Whether the digest is right in the order of an output partition that holds them all.

    They are put in that order then.
    """
    fires = [memory.fire(each) for each in found.identities]
    seen = [each for each in fires if each is not None]
    if len(seen) != len(fires) or len({each.spot[:2] for each in seen}) != 1:
        return False
    ordered = sorted(seen, key=lambda each: each.spot.offset)
    if digest_of([each.identity for each in ordered]) != sealed.digest:
        return False
    found.identities = [each.identity for each in ordered]
    return True
