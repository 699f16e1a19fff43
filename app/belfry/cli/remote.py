"""Calls of commands to a worker over HTTP: reads, and changes that begin with a read.

It is the client of the commands alone, on the standard library, so that a command starts quickly. A
worker's problem document (RFC 9457) becomes a `WorkerRefusal` with its detail and its code, and the
HTTP status becomes the exit code: 404 is 3, 409 and 412 are 4, all else is 1.

A call blocks for at most `TIMEOUT_S` seconds, and is not tried again: whether a change may be
repeated is known to the caller alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from belfry.cli.failures import CommandError, Exit, WrongUse

if TYPE_CHECKING:
    from belfry.cli.session import Session

TIMEOUT_S: Final = 30.0
UNAUTHORIZED: Final = 401
_EXITS: Final = {404: Exit.NOT_FOUND, 409: Exit.CONFLICT, 412: Exit.CONFLICT}


class WorkerRefusal(CommandError):
    """A worker refuses what it was asked; `code` is that of its problem document."""

    def __init__(self, detail: str, status: int, code: str) -> None:
        super().__init__(detail, _EXITS.get(status, Exit.ERROR))
        self.status = status
        self.code = code


class Remote:
    """One worker's HTTP port, as the settings name it, with the key of the settings."""

    def __init__(self, session: Session) -> None:
        """Raises `WrongUse` if the text is not an address."""
        settings = session.settings
        self._url = _address(settings.http_url)
        token = settings.http_token
        self._token = None if token is None else token.get_secret_value()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path; raises `CommandError` with what the worker says is wrong.

        Values that are None are left out of the query, those that are lists are repeated.
        """
        given = {name: value for name, value in query.items() if value is not None}
        return self.ask("GET", path + (f"?{urlencode(given, doseq=True)}" if given else ""))

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON that answers a request; raises `CommandError`.

        `body` goes out as JSON. The result is None for an empty answer. Raises `WorkerRefusal` if
        the worker has answered with an error. Any other `CommandError` means that no answer came; a
        change may have been carried out all the same.
        """
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        import orjson

        data = None if body is None else orjson.dumps(body)
        asked = Request(self._url + path, data, dict(headers or {}), method=method)  # noqa: S310
        if data is not None:
            asked.add_header("content-type", "application/json")
        if self._token:
            asked.add_header("authorization", f"Bearer {self._token}")
        try:
            with urlopen(asked, timeout=TIMEOUT_S) as answer:  # noqa: S310  (a user's own address)
                content = answer.read()
                return orjson.loads(content) if content else None
        except HTTPError as error:
            with error:
                raise _refused(error.code, error.read()) from None
        except (URLError, OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise CommandError(
                f"No worker answers at {self._url}: {why}. Give the address of one (--http-url,"
                " BELFRY_HTTP_URL), or start one with `belfry dev`."
            ) from None


def _address(given: str) -> str:
    """The address without a slash at its end; `WrongUse` if it is not one of a worker."""
    url = given.rstrip("/")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname and parts.port != 0)
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise WrongUse(
            f"{given[:200]!r} is no address of a worker: give http:// or https:// and host:port,"
            " such as http://127.0.0.1:8700 (--http-url, BELFRY_HTTP_URL)."
        )
    return url


def _refused(status: int, raw: bytes) -> WorkerRefusal:
    """The error of an answer; without a problem document its status alone tells it."""
    import orjson

    try:
        problem = orjson.loads(raw)
        detail, code = str(problem["detail"]), str(problem.get("code", "unknown"))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        detail, code = f"The worker answers with HTTP status {status}.", "unknown"
    if status == UNAUTHORIZED:
        detail += " A command shows what BELFRY_HTTP_TOKEN holds."
    return WorkerRefusal(detail, status, code)


def tenant_path(tenant: str) -> str:
    """The path of a tenant."""
    return f"/v1/tenants/{quote(tenant, safe='')}"


def calendar_path(tenant: str, calendar: str) -> str:
    """The path of a calendar."""
    return f"{tenant_path(tenant)}/calendars/{quote(calendar, safe='')}"


def schedule_path(tenant: str, schedule_id: str) -> str:
    """The path of a schedule."""
    return f"{tenant_path(tenant)}/schedules/{quote(schedule_id, safe='')}"
