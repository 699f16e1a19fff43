"""A word of warning where a target's header holds a credential as it is, and not by reference.

It is taken as ever, so the answer says it beside the outcome: in the header `belfry-warning`, and
in a bulk answer in the line's `warning`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from belfry.schedules.header_secrets import literal_credentials, literal_warning
from belfry.schedules.targets import HttpTarget

WARNING: Final = "belfry-warning"


def warning_of(fields: Mapping[str, Any]) -> str | None:
    """A warning about the targets of a request, or None."""
    given = fields["http_targets"]
    pairs = [(each["name"], each["value"]) for target in given for each in target["headers"]]
    return literal_warning(literal_credentials(pairs)) if pairs else None


def warned(response: Response, fields: Mapping[str, Any]) -> Response:
    """The answer to a request, with a warning where there is one."""
    return _with(response, warning_of(fields))


def warned_of_policy(response: Response, targets: Iterable[HttpTarget]) -> Response:
    """The answer to a policy with these targets, with a warning where there is one."""
    pairs = [pair for target in targets for pair in target.headers]
    return _with(response, literal_warning(literal_credentials(pairs)))


def _with(response: Response, warning: str | None) -> Response:
    if warning is not None:
        response.headers[WARNING] = warning
    return response
