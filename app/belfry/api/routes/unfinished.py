"""Parts of a schedule's answer that others supply, once its holder has answered.

    holder's rows ─► Unfinished ─► lease proven ─► payload out of a day file ─► ends of deliveries

The rows are read and proven first, within a second.  Stores and other workers may take longer, and
their parts do not go stale: a row names its payload by a digest, and a delivery ends once.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.json import shapes
from belfry.api.routes.delivery_ends import DeliveryEnds
from belfry.api.workers.day_payloads import NotShown
from belfry.api.workers.parts import ApiDependencies
from belfry.store.layout.pending import Away
from belfry.store.lookup import ScheduleStatus


class Unfinished(Response):
    """A schedule as it is answered, which lacks its payload, or ends of its fires' deliveries.

    It passes as a response through `Reads.answer`, which finds the holder and proves its lease.
    """

    def __init__(self, shown: Response, stands: bytes | None, *, ends: bool) -> None:
        """`stands` is the row's reference to the payload, or None if the row has the payload."""
        super().__init__()
        self.shown = shown
        self.stands = stands
        self.ends = ends


def unfinished(shown: Response, found: ScheduleStatus | None, *, ends: bool) -> Response:
    """The answer, marked where something is to be added."""
    row = None if found is None else found.pending
    stands = row.payload if row is not None and type(row.payload) is Away else None
    return shown if stands is None and not ends else Unfinished(shown, stands, ends=ends)


class Finishing:
    """Adds the missing parts; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts
        self._ends = DeliveryEnds(parts)

    async def done(self, answer: Response, name: tuple[str, str], caller: Principal) -> Response:
        """The whole answer on a schedule; `name`: tenant, id."""
        if not isinstance(answer, Unfinished):
            return answer
        shown = answer.shown
        if answer.stands is not None:
            shown = await self._with_payload(shown, answer.stands)
        return await self._ends.added(shown, name, caller) if answer.ends else shown

    async def _with_payload(self, shown: Response, stands: bytes) -> Response:
        """The same with the payload of a day file, or with the reason why it is not shown.

        Where its rule cannot be read either, that is the reason which remains.
        """
        found: dict[str, Any] = orjson.loads(shown.body)
        try:
            payload = await self._parts.ready.day_payloads.of(stands)
        except NotShown as error:
            if found["unreadable"] == shapes.AWAY:
                found["unreadable"] = str(error)
        else:
            if found["unreadable"] == shapes.AWAY:
                del found["unreadable"]
            found |= shapes.payload_json(payload)
        headers = {"etag": shown.headers["etag"]}
        return Response(orjson.dumps(found), shown.status_code, headers, "application/json")
