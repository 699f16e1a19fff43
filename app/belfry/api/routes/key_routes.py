"""`/v1/keys`: which API keys there are, when they end, and when each was used last; and `/v1/me`.

A worker counts the keys that are shown to it. The one that is asked asks the others, each for
itself alone, and adds up; a worker that does not answer in time is named.

    GET /v1/keys at W1
    W1 itself                             ci: 40 uses, the last at 11:58
    W2, asked with alone=true             ci: 12 uses, the last at 11:59
    W3 does not answer within 1 s         silent: ["W3"]
    answer                                ci: 52 uses, the last at 11:59, workers: 2

Counts are in memory, so they begin with each worker's start. `counted_since` is the latest of these
starts: from then on all that answered have counted. No key and no whole digest is ever in an
answer.

`/v1/me` tells the caller its name and its rights, for pages that leave out forbidden actions. Each
route still decides by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from belfry.api.auth.key_uses import KeyRow, merged
from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.document import problems
from belfry.api.json.queries import Known
from belfry.api.json.worker_answers import instant
from belfry.api.routes.callers import Callers
from belfry.api.workers.everyone import Others, ask_others, no_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.view import WorkerView
from belfry.schedules.instants import parse_instant

# The question to another worker: for itself alone, or each would ask all others in turn.
ALONE: Final = Target("GET", "/v1/keys", "alone=true")


class KeyAnswer(BaseModel):
    """One API key: its caller, and its uses."""

    id: str = Field(description="Beginning of its SHA-256, as the list has it.")
    name: str
    role: str
    tenants: list[str]
    state: str = Field(description="`valid`, `expiring` (within 14 days) or `expired`.")
    expires_at: str | None
    uses: int = Field(description="Requests that showed it, since the workers started.")
    refused: int = Field(description="Requests that showed it after its end.")
    last_used_at: str | None
    last_used_from: str | None
    workers: int = Field(description="Workers whose list has it.")

    @classmethod
    def of(cls, row: KeyRow, now_ms: float) -> KeyAnswer:
        """A key as it is shown at an instant."""
        return cls(
            id=row.id,
            name=row.name,
            role=row.role,
            tenants=list(row.tenants),
            state=row.state(now_ms),
            expires_at=None if row.expires_ms is None else instant(row.expires_ms),
            uses=row.uses,
            refused=row.refused,
            last_used_at=None if row.last_ms is None else instant(row.last_ms),
            last_used_from=row.last_from,
            workers=row.workers,
        )

    def row(self) -> KeyRow:
        """The answer of another worker, as a row."""
        return KeyRow(
            self.id,
            self.name,
            self.role,
            tuple(self.tenants),
            None if self.expires_at is None else parse_instant(self.expires_at),
            self.uses,
            self.refused,
            None if self.last_used_at is None else parse_instant(self.last_used_at),
            self.last_used_from,
            self.workers,
        )


class KeysAnswer(BaseModel):
    """All API keys that some worker knows."""

    keys: list[KeyAnswer]
    workers: int = Field(description="Workers that answered.")
    counted_since: str = Field(description="From then on all of them have counted.")
    silent: list[str] = Field(description="Workers that did not answer in time.")


class KeysAsked(Known):
    """Who is to answer."""

    alone: bool = Field(False, description="The worker that is asked, without asking the others.")


KeysQuery = Annotated[KeysAsked, Query()]
# The keys of this worker's list with their uses, at this instant.
Rows = Callable[[], list[KeyRow]]


def key_routes(view: WorkerView, parts: ApiDependencies, rows: Rows, callers: Callers) -> APIRouter:
    """The route that shows the keys of `rows`.

    Every caller but one that operates all tenants is refused with 403, since keys are the
    platform's.
    """
    routes = APIRouter(prefix="/v1", tags=["keys"])

    @routes.get("/keys", responses=problems(422, 429))
    async def keys(query: KeysQuery, caller: Principal = callers.who(Role.OPERATE)) -> KeysAnswer:
        """API keys with their roles, tenants, ends and last uses, for operators of all tenants."""
        if not caller.is_platform:
            raise forbidden(
                f"{caller.name} does not operate all tenants (*), whose keys these are."
            )
        now_ms = parts.now_ms()
        mine = KeysAnswer(
            keys=[KeyAnswer.of(row, now_ms) for row in rows()],
            workers=1,
            counted_since=instant(view.identity.started_ms),
            silent=[],
        )
        others: Others[KeysAnswer] = no_others()
        if not query.alone:
            others = await ask_others(view, parts, caller, ALONE, KeysAnswer)
        return _together([mine, *others.told.values()], now_ms).model_copy(
            update={"silent": others.silent}
        )

    return routes


def _together(answers: list[KeysAnswer], now_ms: float) -> KeysAnswer:
    """One answer of several: uses add up, and the latest last use is shown."""
    rows = merged(key.row() for answer in answers for key in answer.keys)
    return KeysAnswer(
        keys=[KeyAnswer.of(row, now_ms) for row in rows],
        workers=len(answers),
        counted_since=max(answer.counted_since for answer in answers),
        silent=[],
    )


class MeAnswer(BaseModel):
    """The caller, as the worker knows it."""

    name: str
    role: Role
    tenants: list[str] = Field(description="Names, or beginnings of names followed by `*`.")


def me_routes(callers: Callers) -> APIRouter:
    """The route that tells callers their name and rights."""
    routes = APIRouter(prefix="/v1", tags=["access"])

    @routes.get("/me", responses=problems(429))
    async def me(caller: Principal = callers.who(Role.READ)) -> MeAnswer:
        """The name of the caller's key, its role, and the tenants that it is bound to."""
        return MeAnswer(name=caller.name, role=caller.role, tenants=list(caller.tenants))

    return routes
