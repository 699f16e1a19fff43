"""Where schedules live while a belfry grows and key groups move (I43), what is sent on (I44), and
that who sent it on does not stay (I49).

    I43   a tenant's home is worked out with the number of homes that the belfry was made with; a
          request is judged there, or where the rows of its key group say that the group is, and a
          schedule lies nowhere else
    I44   a partition sends on what it was given, once, and nothing by a group's offset any more
          once it has held schedules
    I49   once all is quiet, each partition that the changelog has is owned by one that keeps state,
          whatever it was added for at first

Rows are read by the specification of their bytes, homes are worked out anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final

from tests.simulation.murmur import partition_of
from tests.simulation.sent import SOURCE
from tests.simulation.stores import CHANGELOG, PENDING, bare
from tests.simulation.taking import Seen, is_move, origin
from tests.simulation.trail import Step

if TYPE_CHECKING:
    from tests.simulation.world import World

LEAST_GROUPS: Final = 4_096
HOME_ROW, LIES_ROW = b"\0gh", b"\0gl"
_NUMBER: Final = Struct(">3sI")
# Format, letter, phase, where it lies, where it goes.
_ROW: Final = Struct(">BBBII")
# What is written to one partition by owners without a state, and by whom of tenants' inputs.
FORWARDS, INPUTS = "ingress", "inlets"
HOMES: Final = "belfry.homes"


@dataclass(slots=True)
class Known:
    """What a partition's rows say of groups: before a step or behind it, for it may do several."""

    # Where groups lie whose home it is, unless at home.
    away: dict[int, int] = field(default_factory=dict)
    # Groups that are here, come or leave, though their home is elsewhere.
    here: set[int] = field(default_factory=set)


class Places:
    """Folds the rows of groups of each partition."""

    def __init__(self, world: World, partitions: list[list[Step]]) -> None:
        self.homes = world.scenario.partitions
        self.groups = -(-LEAST_GROUPS // self.homes) * self.homes
        self.problems: list[str] = []
        # By partition and number of a step: before and behind it.
        self._known: dict[tuple[int, int], tuple[Known, Known]] = {}
        for steps in partitions:
            known = Known()
            for step in steps:
                before, known = known, self._behind(step, known)
                self._known[step.partition, step.index] = before, known

    def group(self, tenant: str) -> int:
        """The key group of a tenant."""
        return partition_of(tenant.encode(), self.groups)

    def may_be(self, tenant: str, step: Step) -> bool:
        """Whether a tenant's schedules may lie in the partition of a step then."""
        group, partition = self.group(tenant), step.partition
        if group % self.homes == partition:
            # Rows that leave or come are written there as well.
            return True
        return any(group in each.here for each in self._known[partition, step.index])

    def judges(self, tenant: str, step: Step) -> bool:
        """Whether a tenant's requests are judged in the partition of a step then."""
        group, partition = self.group(tenant), step.partition
        known = self._known[partition, step.index]
        if group % self.homes == partition:
            return any(each.away.get(group, partition) == partition for each in known)
        return any(group in each.here for each in known)

    def _behind(self, step: Step, before: Known) -> Known:
        known = Known(dict(before.away), set(before.here))
        for row in step.rows:
            kind = (row.key or b"")[:3]
            if kind not in (HOME_ROW, LIES_ROW):
                continue
            group, value = _NUMBER.unpack_from(row.key or b"")[1], row.value
            at_home = group % self.homes == step.partition
            if kind == HOME_ROW and not at_home:
                what = f"I43 partition {step.partition} takes itself for the home of group {group}"
                self.problems.append(what)
            if kind == HOME_ROW and value is None:
                known.away.pop(group, None)
            elif kind == HOME_ROW:
                known.away[group] = _ROW.unpack_from(bare(value or b""))[3]
            elif value is None:
                known.here.discard(group)
            else:
                known.here.add(group)
        return known


def check_places(world: World, partitions: list[list[Step]], seen: Seen) -> list[str]:
    """All that is wrong with where schedules lie and where requests go."""
    if not world.scenario.faults.get("grow"):
        # Others have tenants in several partitions.
        return []
    places = Places(world, partitions)
    problems = [*places.problems, *_sent_on(world, partitions)]
    for steps in partitions:
        for step in steps:
            problems += _lying(places, step)
    for taken in seen.taken:
        if not places.judges(taken.sent.tenant, taken.step):
            where = f"partition {taken.step.partition}, transaction {taken.step.index + 1}"
            problems.append(f"I43 {taken.sent.name} was judged in {where}: its group is elsewhere")
    kept = len(world.broker.topics.get(HOMES, ()))
    if kept not in (0, places.homes):
        problems.append(f"I43 {HOMES} says {kept}, and there are {places.homes} homes")
    return problems


def _lying(places: Places, step: Step) -> Iterator[str]:
    """Schedules that lie where their group is not."""
    for row in step.rows:
        key, value = row.key or b"", bare(row.value or b"")
        if key[:1] != b"\0" and value[1:2] == bytes([PENDING]):
            tenant = key.partition(b"/")[0].decode()
            if not places.may_be(tenant, step):
                yield f"I43 {key.decode()} lies in partition {step.partition}"


def _sent_on(world: World, partitions: list[list[Step]]) -> Iterator[str]:
    """What was sent on more often than it came, or behind the first step of its partition."""
    came: Counter[tuple[int, tuple[str, int, int]]] = Counter()
    went: Counter[tuple[int, tuple[str, int, int]]] = Counter()
    for log in world.broker.topics[SOURCE]:
        for entry in log.history:
            if not entry.committed or is_move(entry):
                continue
            first = origin(entry, log.partition)
            came[log.partition, first] += 1
            *_, kind, number = f".{'' if entry.txn is None else entry.txn.producer}".split(".")
            if kind == INPUTS or entry.txn is None:
                continue
            # The second of two ids ends with a letter.
            writer = int(kind if not number.isdigit() else number)
            went[writer, first] += 1
            begun = partitions[writer][:1] if writer < len(partitions) else []
            if kind == FORWARDS and begun and entry.order > begun[0].order:
                yield f"I44 {first} was sent on though partition {writer} held schedules by then"
    for (partition, first), times in went.items():
        if times > came[partition, first]:
            before = came[partition, first]
            yield f"I44 {first} came to partition {partition} {before} times, and went on {times}"


def moved(world: World) -> list[str]:
    """What moves there were: into what was added, between two of those, and out."""
    homes, found, lies = world.scenario.partitions, list[str](), dict[int, list[int]]()
    for log in world.broker.topics[CHANGELOG][:homes]:
        for entry in log.history:
            if entry.committed and entry.txn and (entry.key or b"").startswith(HOME_ROW):
                group = _NUMBER.unpack_from(entry.key or b"")[1]
                value = entry.value
                at = log.partition if value is None else _ROW.unpack_from(bare(value))[3]
                lies.setdefault(group, [log.partition]).append(at)
    for each in lies.values():
        for before, after in pairwise(each):
            if before != after:
                added = before >= homes, after >= homes
                found.append(f"moved {_WAYS[added]}")
    return found


_WAYS: Final = {
    (False, True): "into what was added",
    (True, True): "between what was added",
    (True, False): "out of what was added",
    (False, False): "among homes",
}
