"""The audit log of HTTP: each request for a change, and each refusal.

One place, in front of all others, sees every request with its answer, so no route can be forgotten.
Facts from the inside (the caller, the verdict, which fields of a policy change) are noted on the
request's `RequestNotes` by the code that knows them.

    PUT    /v1/tenants/{tenant}                            policy.set
    DELETE /v1/tenants/{tenant}                            policy.remove
    POST   /v1/tenants/{tenant}/schedules                  schedule.create, or schedule.create_many
    PUT    /v1/tenants/{tenant}/schedules/{id}             schedule.put
    DELETE /v1/tenants/{tenant}/schedules/{id}             schedule.cancel
    POST   /v1/tenants/{tenant}/schedules/{id}/{action}    schedule.pause, .resume, .trigger …
    POST   /v1/tenants/{tenant}/dead-letters/{place}/replay  delivery.replay
    POST   /v1/tenants/{tenant}/jobs                       bulk.begin
    DELETE /v1/tenants/{tenant}/jobs/{job}                 bulk.stop
    PUT    /v1/tenants/{tenant}/calendars/{calendar}       calendar.set
    DELETE /v1/tenants/{tenant}/calendars/{calendar}       calendar.remove
    POST   /v1/tenants/{tenant}/redrives, /v1/redrives     redrive.send
    POST   /v1/delivery-hosts/{host}/{break or close}      host.break, host.close
    POST   /v1/key-groups/{group}/move                     key_group.move
    any other method; a refused read                       its name in lower case; read

A request that another worker forwarded, and signed, was noted there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from belfry.api.notes import NOTE, RequestNotes
from belfry.audit.trail import Trail
from belfry.wire.audit import AuditEvent, Object, Result
from belfry.wire.trace_context import context_of

# Schedules that one event of the audit log names; a request about more has several events.
MOST_OBJECTS: Final = 500
CHANGES_NOTHING: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
READ: Final = "read"
NOTHING: Final = Object("")
# Answers to a caller without the right, or with too many calls.
REFUSALS: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
)
_TENANT: Final = re.compile(r"/v1/tenants/([^/]+)(?:/(.*))?", re.DOTALL)
_SCHEDULE: Final = re.compile(r"schedules/(.+)", re.DOTALL)
_ACTION: Final = re.compile(r"(.+)/(pause|resume|trigger|ack|dry-run)", re.DOTALL)
_LETTER: Final = re.compile(r"dead-letters/([^/]+)/replay")
_GROUP: Final = re.compile(r"/v1/key-groups/([^/]+)/move")
_HOST: Final = re.compile(r"/v1/delivery-hosts/([^/]+)/(break|close)")
# They only read, whatever their method.
LOOKS: Final = frozenset({"/v1/preview", "/v1/decode"})
_BY_METHOD: Final = {"PUT": "schedule.put", "DELETE": "schedule.cancel"}
_OF_OTHERS: Final = (
    (re.compile(r"jobs(?:/(.+))?", re.DOTALL), {"POST": "bulk.begin", "DELETE": "bulk.stop"}),
    (re.compile(r"calendars/([^/]+)"), {"PUT": "calendar.set", "DELETE": "calendar.remove"}),
    (re.compile(r"redrives()"), {"POST": "redrive.send"}),
)
_OF_POLICY: Final = {"PUT": "policy.set", "DELETE": "policy.remove"}


class AuditedRequest(NamedTuple):
    """The subject of a request.

    `action` has a dot (`schedule.put`) where the table above has the path; else it is `read`, or
    the method in lower case. `object` is the id that the path names, decoded, or None.
    """

    action: str
    tenant: str | None = None
    object: str | None = None


def asked_by(method: str, path: str) -> AuditedRequest:
    """The subject of a request of this method to this path, as it was written.

        asked_by("POST", "/v1/tenants/shop/schedules/order%2F7/pause")
        ─► AuditedRequest("schedule.pause", "shop", "order/7")

    It looks at the path alone, so it also names subjects that no route has.
    """
    found = _TENANT.fullmatch(path)
    tenant = None if found is None else unquote(found[1])
    if method in CHANGES_NOTHING or path in LOOKS:
        return AuditedRequest(READ, tenant)
    if found is None or tenant is None:
        return _of_host(method, path)
    rest = found[2]
    if rest is None and method in _OF_POLICY:
        return AuditedRequest(_OF_POLICY[method], tenant, tenant)
    if rest == "schedules" and method == "POST":
        return AuditedRequest("schedule.create", tenant)
    for shape, actions in _OF_OTHERS:
        other = shape.fullmatch(rest or "")
        if other is not None and method in actions:
            return AuditedRequest(actions[method], tenant, unquote(other[1]) if other[1] else None)
    letter = _LETTER.fullmatch(rest or "")
    if letter is not None and method == "POST":
        return AuditedRequest("delivery.replay", tenant, unquote(letter[1]))
    named = _SCHEDULE.fullmatch(rest or "")
    if named is not None:
        return _of_schedule(method, tenant, named[1])
    return AuditedRequest(method.lower(), tenant)


def _of_host(method: str, path: str) -> AuditedRequest:
    """The subject of a request outside of tenants: a host, a key group, all refusals, or none."""
    if path == "/v1/redrives" and method == "POST":
        return AuditedRequest("redrive.send")
    host, group = _HOST.fullmatch(path), _GROUP.fullmatch(path)
    if group is not None and method == "POST":
        return AuditedRequest("key_group.move", None, group[1])
    if host is None or method != "POST":
        return AuditedRequest(method.lower())
    return AuditedRequest(f"host.{host[2]}", None, unquote(host[1]))


def _of_schedule(method: str, tenant: str, named: str) -> AuditedRequest:
    """The subject of a request to a path below `schedules/`; `named` is the rest of that path."""
    acts = _ACTION.fullmatch(named) if method == "POST" else None
    if acts is not None:
        return AuditedRequest(f"schedule.{acts[2]}", tenant, unquote(acts[1]))
    return AuditedRequest(_BY_METHOD.get(method, method.lower()), tenant, unquote(named))


class Audited:
    """ASGI middleware: notes changes and refusals in the trail."""

    def __init__(self, app: ASGIApp, trail: Trail, now_ms: Callable[[], float]) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._trail = trail
        self._now_ms = now_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known, status = RequestNotes(), HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def told(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        token = NOTE.set(known)
        try:
            await self._app(scope, receive, told)
        finally:
            NOTE.reset(token)
            self._book(scope, known, status)

    def _book(self, scope: Scope, known: RequestNotes, status: int) -> None:
        """Note a request after its answer, unless it changed nothing or another worker has noted
        it.
        """
        if known.forwarded or _noted_inside(scope, known):
            return
        # A verdict may be answered 429, for a quota: that is a change that was rejected, no
        # refusal.
        verdicts = any(each.outcome for each in known.objects)
        refused = status in REFUSALS and not verdicts
        reads = known.changes_nothing or scope["path"] in LOOKS
        if not refused and (reads or scope["method"] in CHANGES_NOTHING):
            return
        asked = asked_by(scope["method"], _path(scope))
        if not refused and "." not in asked.action and status >= HTTPStatus.BAD_REQUEST:
            # No such thing exists that could have been changed.
            return
        event = _event(scope, known, asked, (status, int(self._now_ms())))
        if refused:
            self._trail.refused(replace(event, result="REFUSED"))
            return
        for each in _parts(event, known):
            self._trail.note(each)


def _noted_inside(scope: Scope, known: RequestNotes) -> bool:
    """Whether it is for the console, which asks the API: that request has a note of its own.

    A request that the port refuses has reached no page, and is noted here.
    """
    is_page = scope["path"] == "/" or scope["path"].startswith("/console/")
    return is_page and known.code is None


def _event(
    scope: Scope, known: RequestNotes, asked: AuditedRequest, when: tuple[int, int]
) -> AuditEvent:
    """The event of a request; `when` are its status and the instant of the answer."""
    status, at = when
    headers = Headers(scope=scope)
    client = scope.get("client")
    only = known.objects[0] if known.objects and not known.many else NOTHING
    trace = context_of(headers.get("traceparent", ""))
    return AuditEvent(
        at=at,
        action="schedule.create_many" if known.many else asked.action,
        result=_result(status),
        caller=known.caller,
        role=known.role,
        source_address=client[0] if client else None,
        tenant=asked.tenant,
        object=only.id or asked.object,
        status=status,
        outcome=only.outcome,
        code=known.code if known.coded == status else only.code,
        request_id=known.request or headers.get("x-request-id"),
        trace_id=None if trace is None else trace.trace_id,
        changes=known.changes,
        reason=known.reason,
    )


def _parts(event: AuditEvent, known: RequestNotes) -> Iterator[AuditEvent]:
    """The events of one request: one, or some where it is about many schedules."""
    if not (known.many and known.objects):
        yield event
        return
    for start in range(0, len(known.objects), MOST_OBJECTS):
        yield replace(event, objects=tuple(known.objects[start : start + MOST_OBJECTS]))


def _result(status: int) -> Result:
    """DONE, REJECTED or FAILED, by the status of the answer."""
    if status < HTTPStatus.BAD_REQUEST:
        return "DONE"
    return "REJECTED" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "FAILED"


def _path(scope: Scope) -> str:
    """The path as it was written: names in it are decoded one by one."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode(errors="replace")
    return raw.decode("ascii", "replace")
