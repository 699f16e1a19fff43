"""Checks of `belfry doctor` on a mirror in the cluster that follows: how old its marks are.

It reads the last mark of each partition, and does not ask the other cluster: how far behind this
one is, `belfry mirror status` tells. A mirror that reaches the source writes a mark every five
seconds.

    all marks are young            OK: follows cluster a
    one is older than two minutes  RISK: nobody carries that partition
    some took over, others not     PROBLEM: a take-over was interrupted
    the other one took over later  RISK: this one does not follow it yet
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.shown import partitions_text

if TYPE_CHECKING:
    from belfry.mirror.marks import MirrorMark
    from belfry.settings import SharedSettings

OLD_MS: Final = 120_000
_FOLLOWS: Final = "and does not fire."
# How the workers of a side that follows tell why they wait: by these, and by nothing else.
_OTHER_CLUSTER: Final = "other_cluster"
_NO_CLOCK_YET: Final = "firing is paused: the clock has not been compared"


def is_passive(check: Check) -> bool:
    """Whether a check says that this cluster follows another one, as it should."""
    return (check.check, check.status) == ("mirror", Status.OK) and check.detail.endswith(_FOLLOWS)


def without_following(worker: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker tells of itself without what it says because its cluster follows another.

    `worker` is an answer with ``problems`` and ``partitions``, as of `/healthz/ready`.
    """
    problems = [each for each in worker.get("problems", ()) if not each.startswith(_NO_CLOCK_YET)]
    partitions = [
        {**each, "missing": None}
        if str(each.get("missing") or "").startswith(_OTHER_CLUSTER)
        else each
        for each in worker.get("partitions", ())
    ]
    return {**worker, "problems": problems, "partitions": partitions}


def mirror_checks(cluster: Any, settings: SharedSettings, now_ms: int) -> Iterator[Check]:
    """How the mirror of this cluster stands, where there is one."""
    from belfry.mirror.beginnings import CannotMirror
    from belfry.mirror.marks import MARKS
    from belfry.mirror.sides import opened

    topic = settings.topic(MARKS)
    if topic not in cluster.topics:
        return
    try:
        side = opened("this cluster", settings)
        marks = {each: side.mark(each) for each in range(side.homes)}
        given = {each: side.given_to(each) for each, mark in marks.items() if mark is not None}
    except (CannotMirror, ConnectionError) as error:
        yield Check("mirror", Status.SKIPPED, f"Its marks cannot be read: {error}")
        return
    yield judge(marks, given, now_ms)


def judge(
    marks: Mapping[int, MirrorMark | None], given: Mapping[int, str | None], now_ms: int
) -> Check:
    """What the last marks of all partitions mean; `given` names whom each was given to."""
    known = {number: mark for number, mark in marks.items() if mark is not None}
    active = [number for number, mark in known.items() if mark.activated is not None]
    leaving = [number for number, mark in known.items() if mark.leaving]
    gone = [number for number in active if given.get(number)]
    if gone:
        detail = f"{partitions_text(gone).capitalize()} fired here and belong to {given[gone[0]]}."
        return Check("mirror", Status.RISK, detail, "belfry mirror run, which follows it")
    if len(active) == len(marks):
        source = known[active[0]].source
        return Check("mirror", Status.OK, f"This cluster took over from {source}.")
    if active or leaving:
        left = partitions_text(sorted(marks.keys() - set(active)))
        detail = f"A take-over has begun and is not done for {left}, which fires nowhere."
        return Check("mirror", Status.PROBLEM, detail, "belfry mirror take-over --apply, again")
    old = [
        number for number, mark in marks.items() if mark is None or now_ms - mark.level_ms > OLD_MS
    ]
    if old:
        detail = f"Nobody has carried all of {partitions_text(old)} for two minutes or longer."
        to_do = "belfry mirror status, and the log of belfry mirror run (docs/mirror.md)"
        return Check("mirror", Status.RISK, detail, to_do)
    source = next(iter(known.values())).source
    return Check("mirror", Status.OK, f"This cluster follows {source}, {_FOLLOWS}")
