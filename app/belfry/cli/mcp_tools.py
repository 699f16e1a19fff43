"""The six tools of `belfry mcp`, each a call of a worker's HTTP port.

A tool's arguments have the names of the HTTP API, and its answer is that of the API. The worker
judges the values of arguments; it also checks rights and budgets and writes the audit log. This
module checks two things only. An unknown argument is refused, for otherwise it would be lost. A
name may not be empty, for an empty one would lead to another address.

    {"name": "cancel_schedule", "arguments": {"tenant": "demo", "schedule_id": "order/4711"}}
        ──► DELETE /v1/tenants/demo/schedules/order%2F4711
        ◄── {"outcome": "CANCELLED", …}

The models of `belfry.cli.mcp_arguments` say what they take; an agent reads their schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import time
from typing import Any, Final
from urllib.parse import urlencode

from pydantic import BaseModel

from belfry.api.json.previews import PreviewAnswer, PreviewBody
from belfry.api.json.schedule_answers import PageAnswer, ScheduleAnswer, VerdictAnswer
from belfry.api.nearest import unknown_name
from belfry.cli.failures import WrongUse
from belfry.cli.mcp_arguments import (
    SHOWN_IN_A_LIST,
    SHOWN_NEXT,
    CancelArguments,
    GetArguments,
    ListArguments,
    OfSchedule,
    ScheduleArguments,
    WhyAnswer,
)
from belfry.cli.remote import Remote, schedule_path, tenant_path
from belfry.cli.why import explained
from belfry.schedules.identity import expected_from

Given = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool: what it is called, what it takes and answers, and how the worker is asked.

    An agent calls it by `name`, and reads `title` and `description` beforehand.
    """

    name: str
    title: str
    description: str
    # Its JSON Schema says which names are known, and which have to be there.
    arguments: type[BaseModel]
    # Its JSON Schema describes the answer; it is not checked against it here.
    answers: type[BaseModel]
    # Takes the arguments that are not null, and may take them out of the dictionary.
    ask: Callable[[Remote, Given], Any]
    # Whether a call changes nothing.
    reads: bool = True
    repeatable: bool = True  # A second call changes nothing more.

    def call(self, remote: Remote, arguments: Given) -> Any:
        """The worker's answer as JSON; an argument that is null counts as not given.

        Raises `CommandError` for wrong arguments, and if the worker refuses the call.
        """
        known = [*self.arguments.model_fields]
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise WrongUse(unknown_name(unknown[0], known, f"argument of {self.name}"))
        # An agent may give null for arguments that it does not mean.
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, field in self.arguments.model_fields.items():
            if field.is_required():
                _check_name(name, given.get(name))
        return self.ask(remote, given)


def _check_name(name: str, value: object) -> None:
    """Refuse a name that is missing, empty or no text, with an example of one."""
    if not isinstance(value, str) or not value:
        example = "demo" if name == "tenant" else "order/4711"
        told = "missing" if value is None else repr(value)[:60]
        raise WrongUse(f"{name} is {told}: give a text that is not empty, such as {example!r}.")


def _schedule(remote: Remote, given: Given) -> Any:
    """Create a schedule, or replace the present one of its name."""
    # The rest of the arguments is a body as the HTTP API takes it, without the tenant.
    tenant, replace = given.pop("tenant"), given.pop("replace", False)
    if not isinstance(replace, bool):
        raise WrongUse(f"replace is {str(replace)[:60]!r}: give true or false.")
    if replace:
        return remote.ask("PUT", schedule_path(tenant, given.pop("schedule_id")), given)
    return remote.ask("POST", f"{tenant_path(tenant)}/schedules", given)


def _cancel(remote: Remote, given: Given) -> Any:
    """End a schedule; the other arguments go into the address.

    A version becomes the header `If-Match`, so a schedule that has changed meanwhile is left alone
    (412 from the worker, which is an error of the tool).
    """
    path = schedule_path(given.pop("tenant"), given.pop("schedule_id"))
    version = given.pop("expected_version", None)
    if version is not None and expected_from(str(version)) is None:
        raise WrongUse(
            f"expected_version is {str(version)[:60]!r}: give a version, such as 3, or one with its"
            " generation, such as 17.3."
        )
    condition = {} if version is None else {"if-match": f'"{version}"'}
    return remote.ask("DELETE", path + (f"?{urlencode(given)}" if given else ""), headers=condition)


def _get(remote: Remote, given: Given) -> Any:
    """One schedule, with its next occurrences."""
    path = schedule_path(given.pop("tenant"), given.pop("schedule_id"))
    return remote.get(path, **{"next": SHOWN_NEXT, **given})


def _list(remote: Remote, given: Given) -> Any:
    """One page of a list, and the cursor of the next one.

    The agent asks again with the cursor, so a large list never comes in one answer.
    """
    path = f"{tenant_path(given.pop('tenant'))}/schedules"
    return remote.get(path, **{"limit": SHOWN_IN_A_LIST, **given})


def _preview(remote: Remote, given: Given) -> Any:
    """When a rule would be due; nothing is written, and no schedule is looked at."""
    return remote.ask("POST", "/v1/preview", given)


def _why(remote: Remote, given: Given) -> Any:
    """Why a schedule is as it is: the answer of `belfry why`."""
    found = explained(remote, given["tenant"], given["schedule_id"], int(time() * 1000))
    return {
        "answer": found.answer,
        "schedule": found.schedule,
        "events": found.events,
        "more": found.more,
    }


TOOLS: Final = (
    AgentTool(
        "schedule_event",
        "Schedule an event",
        "Schedule an event: once, or again and again. Exactly one argument says when: `at`,"
        " `delay_ms`, `interval_ms`, `cron`, `rrule`, `after_ack` or `after_group`."
        " The payload is `payload_json`,"
        " `payload_text` or `payload_base64`. The answer says what became of the request:"
        " ACCEPTED, UPDATED, or UNCHANGED where the same schedule is there already. Preview a rule"
        " before you schedule it. Examples:\n"
        '{"tenant": "demo", "schedule_id": "order/4711", "at": "2040-01-01T09:00:00+01:00",'
        ' "payload_json": {"state": "unpaid"}}\n'
        '{"tenant": "demo", "schedule_id": "report", "cron": "0 9 * * MON",'
        ' "timezone": "Europe/Paris", "payload_text": "weekly", "replace": true}',
        ScheduleArguments,
        VerdictAnswer,
        _schedule,
        reads=False,
        repeatable=False,  # With `delay_ms` and `replace` each call begins anew.
    ),
    AgentTool(
        "cancel_schedule",
        "Cancel a schedule",
        "End a schedule before it fires; one that recurs fires no more. What has fired already is"
        " refused with too_late, an unknown id with not_found. Example:\n"
        '{"tenant": "demo", "schedule_id": "order/4711", "reason": "paid"}',
        CancelArguments,
        VerdictAnswer,
        _cancel,
        reads=False,
    ),
    AgentTool(
        "get_schedule",
        "Look at a schedule",
        "Show one schedule with its rule in words, its payload, what it waits for, and its next ten"
        " occurrences; for a day after its end, how it ended. Example:\n"
        '{"tenant": "demo", "schedule_id": "order/4711"}',
        GetArguments,
        ScheduleAnswer,
        _get,
    ),
    AgentTool(
        "list_schedules",
        "List and find schedules",
        "List a tenant's schedules by id, or by due instant where `due_from` or `due_until` is"
        " given. `prefix`, `state`, `group` and `event_type` select. Give `cursor` back, with all"
        " other arguments as they were, for the next page; it is null at the end. Examples:\n"
        '{"tenant": "demo", "prefix": "order/"}\n'
        '{"tenant": "demo", "due_until": "2040-01-01T00:00:00Z", "limit": 50}',
        ListArguments,
        PageAnswer,
        _list,
    ),
    AgentTool(
        "preview_rule",
        "Preview a rule",
        "Say when a rule would be due, counted from now, in words and as instants, with warnings"
        " about clock changes. Nothing is scheduled. Example:\n"
        '{"cron": "0 9 * * MON", "timezone": "Europe/Paris", "count": 5}',
        PreviewBody,
        PreviewAnswer,
        _preview,
    ),
    AgentTool(
        "why_schedule",
        "Explain a schedule",
        "Say why a schedule fired, did not fire, or still waits, with the newest events of its"
        " history. Example:\n"
        '{"tenant": "demo", "schedule_id": "order/4711"}',
        OfSchedule,
        WhyAnswer,
        _why,
    ),
)
