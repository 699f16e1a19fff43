"""Schedules as they stand, asked over HTTP: any worker answers for any tenant.

Kafka has the verdict on a request, but no way to look a schedule up; a worker has it at hand in its
store. The standard library's HTTP client does: one small question at a time, in the thread of the
caller, without a connection that is kept.

Lists come in pages. A cursor says where the next page begins, and a page is asked for when the one
before has been used up. A list is not a snapshot: a schedule that changes meanwhile may be missed,
or shown twice.

An answer of 5xx, 408 or 429 is `Unavailable` and may be tried again. Another refusal is `Refused`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from belfry.client.errors import Refused, Unavailable
from belfry.client.scheduled import AckLock, Filters, Scheduled
from belfry.client.verdict import Verdict
from belfry.schedules.instants import format_instant

# Seconds that a worker has for an answer.
TIMEOUT_S: Final = 10.0
NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class Http:
    """A worker's address, and headers for each request, such as an API key.

    Methods raise `Unavailable` and `Refused`.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, tenant: str, schedule_id: str, last: int = 0) -> Scheduled | None:
        """A schedule with so many of its last fires, or None if there is no such schedule."""
        query = f"?last={last}" if last else ""
        found = self._asked(f"{_of(tenant)}/{quote(schedule_id, safe='')}{query}")
        return None if found is None else Scheduled.from_json(found)

    def list(self, tenant: str, filters: Filters) -> Iterator[Scheduled]:
        """Schedules page by page; a page is asked for when the one before it is used up."""
        asked = {name: _text(value) for name, value in filters.items()}
        yield from map(Scheduled.from_json, self._pages(_of(tenant), "schedules", asked))

    def locks(self, tenant: str) -> Iterator[AckLock]:
        """A tenant's ack locks, page by page."""
        path = _of(tenant).removesuffix("schedules") + "locks"
        yield from map(AckLock.from_json, self._pages(path, "locks", {}))

    def jobs(self, tenant: str, job: str | None = None) -> Any:
        """The JSON of a tenant's bulk jobs, or of one of them; None if it does not exist."""
        path = _of(tenant).removesuffix("schedules") + "jobs"
        return self._asked(path if job is None else f"{path}/{quote(job, safe='')}")

    def calendars(self, tenant: str, calendar: str | None = None) -> Any:
        """The JSON of a tenant's calendars, or of one of them; None if it does not exist."""
        path = _of(tenant).removesuffix("schedules") + "calendars"
        return self._asked(path if calendar is None else f"{path}/{quote(calendar, safe='')}")

    def bulk_pages(self, tenant: str, asked: Mapping[str, Any]) -> Iterator[Any]:
        """The schedules that a bulk job would match, page by page; it changes nothing."""
        query = {"dry": "true"}
        while True:
            path = _of(tenant).removesuffix("schedules") + f"jobs?{urlencode(query)}"
            page = self._asked(path, asked)
            yield page
            if not page["cursor"]:
                return
            query["cursor"] = page["cursor"]

    def _pages(self, path: str, name: str, asked: dict[str, str]) -> Iterator[dict[str, Any]]:
        """The items of all pages of a list under `name`."""
        while True:
            page = self._asked(f"{path}?{urlencode(asked)}") or {name: []}
            yield from page[name]
            if not page.get("cursor"):
                return
            asked["cursor"] = page["cursor"]

    def _asked(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON at a path; None for a schedule, job or calendar that is not there."""
        url = self.url.rstrip("/") + path
        headers = {"accept": "application/json", **self.headers}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["content-type"] = "application/json"
        request = Request(url, data, headers)  # noqa: S310
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310  # the user's address
                return json.loads(answer.read())
        except HTTPError as error:
            text = error.read().decode(errors="replace")
            if error.code == NOT_FOUND and _about_a_schedule(text):
                return None
            raise self._refusal(error.code, path, text) from None
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(
                f"No worker answers at {self.url} ({error}). Give the HTTP address of a running"
                " one: Client(…, http='http://…:8700')."
            ) from None

    def _refusal(self, status: int, path: str, body: str) -> Exception:
        """The error for a status that is no success; which one says whether to try again."""
        text = f"The worker at {self.url} answers {status} to {path}: {body[:500]}"
        if status >= 500 or status in (NOT_FOUND, 408, 429):
            return Unavailable(text)
        return Refused(text, Verdict("", "", None, code=str(status), reason=body))


def _about_a_schedule(body: str) -> bool:
    """Whether a 404 speaks of a schedule and not of a path that this server has not got."""
    try:
        found = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("code") == "not_found"


def _of(tenant: str) -> str:
    """The path of a tenant's schedules."""
    return f"/v1/tenants/{quote(tenant, safe='')}/schedules"


def _text(value: Any) -> str:
    """A filter as a query has it: an aware datetime as RFC 3339."""
    if isinstance(value, datetime):
        return format_instant(round(value.timestamp() * 1000))
    return str(value)
