"""Which transactions of a changelog fired in another cluster: those that a mirror carried.

    marks of belfry.mirror    partition 0: offsets 0 to 812 were carried     not checked against the
                                                                             outputs of this cluster
                              taken over at 12:00:05                         lifecycle before that
                                                                             tells of other outputs
A belfry without a mirror has no such topic, and all of its transactions are its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from belfry.client.errors import Unavailable
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.marks import GOES_ON, MARKS
from belfry.mirror.sides import opened

if TYPE_CHECKING:
    from belfry.cli.session import Session


class FiredElsewhere(NamedTuple):
    """Stretches of offsets by partition, and until when (epoch ms) lifecycle tells of others."""

    stretches: dict[int, tuple[tuple[int, int], ...]] = {}  # noqa: RUF012  # never changed
    until_ms: int = -1


def fired_elsewhere(session: Session) -> FiredElsewhere:
    """What the marks of this cluster say; raises `Unavailable`."""
    cluster, admin = session.admin()
    if session.settings.topic(MARKS) not in cluster.reach(admin).topics:
        return FiredElsewhere()
    try:
        side = opened("this cluster", session.settings)
        marks = {each: side.mark(each) for each in range(side.homes)}
    except (ConnectionError, CannotMirror) as error:
        raise Unavailable(str(error)) from error
    stretches, until_ms = {}, -1
    for partition, mark in marks.items():
        if mark is not None:
            stretches[partition] = mark.carried
            at_ms = GOES_ON if mark.activated is None else mark.activated.at_ms
            until_ms = max(until_ms, at_ms)
    return FiredElsewhere(stretches, until_ms)
