"""`/v1/key-groups`: which key groups lie away from their homes or move, and having one moved.

    GET  /v1/key-groups              every group that is not simply at home, from all workers
    POST /v1/key-groups/1912/move    it is to lie at partition `target` (docs/rebalance.md)

Each worker reads the rows of the partitions that it holds, and the one that is asked joins them. A
move begins only under these conditions: all workers have answered, are of one release and let
groups move, and the group rests. The engine decides all that follows, and no later request of a
caller can come between.

Tenants share groups, so all of it is for callers that are bound to all tenants (`*`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request

from belfry import __version__
from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.document import body_of, problems
from belfry.api.json.key_group_answers import (
    KeyGroupAnswer,
    KeyGroupsAnswer,
    MoveAskedAnswer,
    MoveBody,
    MoveEndAnswer,
    SeenRowAnswer,
)
from belfry.api.json.queries import OfAllAsked, Why
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import parsed
from belfry.api.workers.acknowledgements import NotWritten
from belfry.api.workers.everyone import ask_others
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.internal_token import Target
from belfry.api.workers.key_group_moves import KeyGroupMoves
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.view import WorkerView
from belfry.store.group_standing import GroupState, seen_in, standings
from belfry.telemetry.metrics import Metrics
from belfry.wire.moves import move_named

ALONE: Final = Target("GET", "/v1/key-groups", "alone=true")
# Groups on their way at once: each is quiet meanwhile, and its rows share the log with requests.
MOST_UNDER_WAY: Final = 16
UNDER_WAY: Final = frozenset({GroupState.MOVING, GroupState.ARRIVING, GroupState.RELEASING})
SET: Final = "set BELFRY_KEY_GROUP_MOVES=true on all workers, and restart them one by one"

GroupNumber = Annotated[int, Path(ge=0, le=10_000_000, description="Number of the key group.")]
GroupsQuery = Annotated[OfAllAsked, Query()]
ReasonQuery = Annotated[Why, Query()]


def key_group_routes(
    view: WorkerView, metrics: Metrics, parts: ApiDependencies, callers: Callers
) -> APIRouter:
    """Routes of key groups: one shows them, one has one moved."""
    routes = APIRouter(prefix="/v1", tags=["cluster"])
    groups = KeyGroupRoutes(view, metrics, parts)

    @routes.get("/key-groups", responses=problems(422, 429, 503))
    async def listed(
        query: GroupsQuery, caller: Principal = callers.who(Role.READ)
    ) -> KeyGroupsAnswer:
        """Key groups that lie away from their homes or are on their way, and how far they are."""
        if not caller.reaches_all:
            raise forbidden(f"{caller.name} is bound to some tenants, and groups are of several.")
        return groups.own() if query.alone else await groups.everywhere(caller)

    @routes.post(
        "/key-groups/{group}/move",
        status_code=HTTPStatus.ACCEPTED,
        responses=problems(400, 404, 409, 413, 415, 422, 429, 503),
        openapi_extra=body_of(MoveBody),
    )
    async def move(
        request: Request,
        group: GroupNumber,
        query: ReasonQuery,
        caller: Principal = callers.who(Role.OPERATE),
    ) -> MoveAskedAnswer:
        """Have a key group lie in another partition; how it goes, `GET /v1/key-groups` tells.

        Its events and requests wait meanwhile, mostly for less than a second.
        """
        note().because(query.reason)
        if not caller.is_platform:
            raise forbidden(f"{caller.name} does not operate all tenants (*), of whom groups are.")
        body = await parsed(request, MoveBody)
        return await groups.move(caller, group, body.target)

    return routes


class KeyGroupRoutes:
    """This worker's facts on key groups, and its moves."""

    def __init__(self, view: WorkerView, metrics: Metrics, parts: ApiDependencies) -> None:
        self._view = view
        self._metrics = metrics
        self._parts = parts

    @property
    def _moves(self) -> KeyGroupMoves:
        found = self._parts.ready.moves
        if found is None:
            detail = "This process holds no schedules: ask a worker."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
        return found

    def own(self) -> KeyGroupsAnswer:
        """This worker's facts on the partitions that it holds."""
        moves, holdings = self._moves, self._parts.ready.holdings
        answer = KeyGroupsAnswer(
            groups=moves.groups.count,
            partitions=moves.counted.count,
            homes=moves.counted.homes,
            allowed=moves.allowed,
            refusing=[] if moves.allowed else [self._view.identity.worker_id],
            releases=[__version__],
            ended=[MoveEndAnswer(**end._asdict()) for end in self._metrics.moves.ended()],
        )
        for partition in holdings.held():
            try:
                found = holdings.read(partition, lambda rows, at=partition: seen_in(rows, at))  # type: ignore[misc]
            except NotHeld:
                continue
            answer.read.append(partition)
            answer.rows += [SeenRowAnswer.of(each) for each in found]
        return answer

    async def everywhere(self, caller: Principal) -> KeyGroupsAnswer:
        """The facts of all workers, joined."""
        mine = self.own()
        others = await ask_others(self._view, self._parts, caller, ALONE, KeyGroupsAnswer)
        found = [mine, *others.told.values()]
        seen = [row.seen() for each in found for row in each.rows]
        read = {partition for each in found for partition in each.read}
        members = {each.version for each in self._view.assignment_map().entries}
        told = {release for each in found for release in each.releases}
        return KeyGroupsAnswer(
            groups=mine.groups,
            # Those that all workers know of: others would not know a move to one more.
            partitions=(partitions := min(each.partitions for each in found)),
            # 0 if one does not know of growth, whatever its release.
            homes=min(each.homes for each in found),
            allowed=all(each.allowed for each in found),
            key_groups=[KeyGroupAnswer.of(each) for each in standings(seen, mine.homes).values()],
            ended=[end for each in found for end in each.ended],
            missing=sorted(set(range(partitions)) - read),
            refusing=[name for each in found for name in each.refusing],
            releases=sorted((members | told) - {""}),
            silent=others.silent,
        )

    async def move(self, caller: Principal, group: int, target: int) -> MoveAskedAnswer:
        """Ask for a move; raises `Problem` where something stands against it."""
        moves = self._moves
        home = moves.groups.home(group)
        found = await self.everywhere(caller)
        standing = next((each for each in found.key_groups if each.group == group), None)
        source = home if standing is None else standing.lies
        for problem in (
            _of_place(found, group, target),
            _of_workers(found),
            _of_group(found, standing, source, target),
        ):
            if problem is not None:
                raise problem
        try:
            asked = await moves.ask(group, target, int(self._parts.now_ms()))
        except NotWritten as error:
            detail = (
                f"Kafka has not confirmed the record that asks for the move ({error}). It may have"
                " been written or not: look how the group stands before you ask again."
            )
            unavailable = HTTPStatus.SERVICE_UNAVAILABLE
            raise Problem(unavailable, detail, "not_written", RETRY_SOON) from None
        named = move_named(asked, 0 if standing is None else standing.move)
        return MoveAskedAnswer(group=group, home=home, source=source, target=target, move=named)


def _of_place(found: KeyGroupsAnswer, group: int, target: int) -> Problem | None:
    """Why there is no such group, or no such partition for it."""
    if group >= found.groups:
        detail = f"There is no key group {group}: they are numbered from 0 to {found.groups - 1}."
        return Problem(HTTPStatus.NOT_FOUND, detail, "no_key_group")
    if target >= found.partitions:
        detail = (
            f"Partition {target} holds no schedules: give one from 0 to {found.partitions - 1}."
            " What was added to the topic of requests alone only sends requests on: add partitions"
            " that hold schedules by `belfry rebalance grow`."
        )
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "no_partition")
    return None


def _of_workers(found: KeyGroupsAnswer) -> Problem | None:
    """Why no group may be moved among these workers."""
    if found.refusing:
        names = ", ".join(found.refusing)
        detail = f"Key groups may not move, say {names}: {SET}."
        return Problem(HTTPStatus.CONFLICT, detail, "moves_not_allowed")
    if len(found.releases) > 1:
        detail = (
            f"The workers are of several releases ({', '.join(found.releases)}), and an older one"
            " may not read the rows of a newer one: move groups once all are of one release."
        )
        return Problem(HTTPStatus.CONFLICT, detail, "mixed_releases")
    if found.silent or found.missing:
        who = f"workers do not answer: {', '.join(found.silent)}" if found.silent else ""
        what = f"nobody tells of partitions {found.missing}" if found.missing else ""
        detail = f"Not all is known ({'; '.join(filter(None, (who, what)))}): try again."
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "workers_silent", RETRY_SOON)
    return None


def _of_group(
    found: KeyGroupsAnswer, standing: KeyGroupAnswer | None, source: int, target: int
) -> Problem | None:
    """Why this group does not move now."""
    state = GroupState.RESTS if standing is None else GroupState(standing.state)
    if state in UNDER_WAY:
        detail = f"The key group is on its way ({state}): ask again when it rests."
        return Problem(HTTPStatus.CONFLICT, detail, "group_moves", RETRY_SOON)
    if state is GroupState.RESTS and source == target:
        detail = f"The key group lies in partition {target} already."
        return Problem(HTTPStatus.CONFLICT, detail, "lies_there")
    under_way = sum(GroupState(each.state) in UNDER_WAY for each in found.key_groups)
    if under_way >= MOST_UNDER_WAY and source != target:
        detail = f"{under_way} key groups are on their way, and no more at once: ask again soon."
        return Problem(HTTPStatus.CONFLICT, detail, "too_many_moves", RETRY_SOON)
    return None
