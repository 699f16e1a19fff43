"""Key groups in answers: the state of groups that are away from home or moving."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from belfry.api.json.values import Strict
from belfry.store.group_standing import GroupState, SeenRow, Standing
from belfry.store.layout.groups import NOWHERE, GroupRow

State = Literal["asked", "moving", "arriving", "releasing", "rests"]


class MoveBody(Strict):
    """Where a key group is to lie."""

    target: int = Field(
        ge=0, le=1023, description="Partition; the one where it lies calls off what was only asked."
    )


class KeyGroupAnswer(BaseModel):
    """A key group that lies away from its home, or moves."""

    group: int
    home: int = Field(description="Where requests of its tenants come in, always.")
    state: State = Field(
        description="`asked`: the target has not answered yet; `moving`: rows leave, and requests"
        " wait at the home; `arriving`: rows come in; `releasing`: requests that have waited go on;"
        " `rests`."
    )
    lies: int = Field(description="The partition where it lies, or that it leaves.")
    goes: int | None = Field(description="The partition that it goes to; null where it rests.")
    move: int = Field(description="The id of the last move: mostly the offset of its record.")
    records: int = Field(description="How many records of rows have left, or come.")
    waiting: int = Field(description="Requests that wait at the home, up to 100000.")

    @classmethod
    def of(cls, each: Standing) -> KeyGroupAnswer:
        """The answer that shows a group."""
        return cls(**each._replace(state=GroupState(each.state))._asdict())


class MoveEndAnswer(BaseModel):
    """A move that has ended, as the owner of the home remembers it."""

    group: int
    move: int
    source: int
    target: int
    why: str | None = Field(description="Why the group stays where it lay; null: it has moved.")


class SeenRowAnswer(BaseModel):
    """One partition's facts on a group; for other workers."""

    partition: int
    group: int
    at_home: bool
    phase: int
    at: int
    to: int | None
    move: int
    number: int
    waiting: int

    @classmethod
    def of(cls, each: SeenRow) -> SeenRowAnswer:
        """The answer that shows a row."""
        row = each.row
        return cls(
            partition=each.partition,
            group=each.group,
            at_home=each.at_home,
            phase=row.phase,
            at=row.at,
            to=None if row.to == NOWHERE else row.to,
            move=row.move,
            number=row.number,
            waiting=each.waiting,
        )

    def seen(self) -> SeenRow:
        """The row as it was seen."""
        to = NOWHERE if self.to is None else self.to
        row = GroupRow(self.phase, self.at, to, self.move, self.number)
        return SeenRow(self.partition, self.group, self.at_home, row, self.waiting)


class KeyGroupsAnswer(BaseModel):
    """Answer of `/v1/key-groups`: those that are not simply at home."""

    groups: int = Field(description="How many key groups there are.")
    partitions: int = Field(description="How many partitions there are that hold schedules.")
    homes: int = Field(
        0,
        description="How many of them are homes of tenants: fewer where it has grown, and 0 where a"
        " worker is of a release that knows of no growth.",
    )
    allowed: bool = Field(description="Whether all workers let key groups move.")
    key_groups: list[KeyGroupAnswer] = Field(default_factory=list)
    ended: list[MoveEndAnswer] = Field(
        default_factory=list, description="The last moves that ended, while their owners live."
    )
    missing: list[int] = Field(
        default_factory=list, description="Partitions of which no worker has told."
    )
    refusing: list[str] = Field(
        default_factory=list, description="Workers that do not let key groups move."
    )
    releases: list[str] = Field(default_factory=list, description="Of all workers of the group.")
    silent: list[str] = Field(
        default_factory=list, description="Workers of the group that did not answer in time."
    )
    read: list[int] = Field(
        default_factory=list, description="The partitions of the worker that answers alone."
    )
    rows: list[SeenRowAnswer] = Field(
        default_factory=list, description="Its rows, for who gathers them; else empty."
    )


class MoveAskedAnswer(BaseModel):
    """A move that was asked for; how it goes is told by `GET /v1/key-groups`."""

    group: int
    home: int
    source: int
    target: int
    move: int = Field(
        description="What names the move: the offset at the home of the record that asks for it, or"
        " where offsets have begun anew the next number behind the group's last move."
    )
