"""Every place that shows a request's fields has all of them: the table in `schedules/fields` says.

Most places are made from the table.  The others are written for people or for other programs: the
schema, typed signatures, models of HTTP, options, pages.  A message names the place and the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, get_type_hints

import click
import pytest
import typer

from belfry.api.json.bodies import ScheduleBody
from belfry.api.json.schedule_answers import ScheduleAnswer
from belfry.cli.program import program
from belfry.client.options import Change, Definition
from belfry.schedules.field import AVRO, Field, Form
from belfry.schedules.fields import EMPTY, FIELDS, KIND_OF
from belfry.schedules.request import Request
from belfry.schedules.retry_rule import HEADER as RETRY
from belfry.schedules.triggers.registry import KINDS
from belfry.wire import catalogue, headers
from tests.architecture.tree import ROOT

EVERY: Final = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
# Fields that a place does not have, and why.
NOT_IN_A_BODY: Final = {
    "tenant": "It is in the path.",
    "action": "The method and the path say it.",
    "fire_id": "Acknowledgements have a body of their own.",
    "standing": "Only an import knows where a schedule stood.",
    "bulk": "Bulk jobs have a body of their own.",
    "days_off": "Calendars have a body of their own.",
}
NOT_IN_AN_ANSWER: Final = {
    **dict.fromkeys(("action", "expected_version", "request_id"), "It is about one request."),
    "throttle_ms": "It is about one request.",
    **dict.fromkeys(
        ("reason", "fire_id", "standing", "bulk", "days_off"), "It is about one request."
    ),
}
# Names that the command line has for other things than options of `schedule create`.
NOT_AN_OPTION: Final = frozenset(
    {"tenant", "schedule_id", "action", "kind", "fire_id", "standing", "bulk", "days_off"}
)


def in_the_schema() -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in catalogue.schema("ScheduleRequest")["fields"]}


def branch(avro: Any) -> Any:
    """The type of a field, without the null of an optional one."""
    return avro[1] if isinstance(avro, list) else avro


def lacks(place: str, wanted: Iterable[str], has: Iterable[str]) -> str:
    """What a place lacks, and has too much of, in words; empty where it is as the table says."""
    wanted, has = list(wanted), list(has)
    missing = [name for name in wanted if name not in has]
    odd = [name for name in has if name not in wanted]
    found = [f"{place} lacks {', '.join(missing)}"] if missing else []
    found += [f"{place} has {', '.join(odd)}, which schedules/fields.py lacks"] if odd else []
    return "; ".join(found)


def test_the_schema_has_the_fields_in_the_order_of_the_table() -> None:
    place = "schemas/io.belfry.ScheduleRequest.avsc"
    assert not (why := lacks(place, FIELDS, in_the_schema())), why
    assert list(in_the_schema()) == list(FIELDS), f"{place} has another order than the table"


@EVERY
def test_the_schema_says_the_same_of_a_field(field: Field) -> None:
    found = in_the_schema()[field.name]
    avro = branch(found["type"])
    form = avro if isinstance(avro, str) else avro.get("logicalType") or avro["type"]
    where = f"schemas/io.belfry.ScheduleRequest.avsc, field {field.name}"
    assert form == AVRO[field.form], f"{where}: its type is {form}, the table says {field.form}"
    assert found["doc"] == field.doc, f"{where}: its doc is another sentence than the table's"
    assert ("default" in found) is not field.required, f"{where}: the table has another default"
    assert found.get("default") == field.default, f"{where}: the table has another default"
    if field.form is Form.SYMBOL:
        symbols = set(avro["symbols"]) - {"UNKNOWN"}
        assert symbols == set(field.symbols), f"{where}: the table has other symbols"


def test_the_typed_request_has_all_fields() -> None:
    why = lacks("schedules/request.py, Request", FIELDS, get_type_hints(Request))
    assert not why, why


def test_the_clients_signature_has_all_arguments() -> None:
    wanted = [field.argument for field in FIELDS.values() if field.argument]
    has = [*get_type_hints(Change), *get_type_hints(Definition)]
    own = {"wait", "timeout_s", "tell_type"}
    why = lacks("client/options.py, Definition", wanted, [name for name in has if name not in own])
    assert not why, why


def names_in_json(left_out: Iterable[str]) -> list[str]:
    return [
        json for name, field in FIELDS.items() if name not in left_out for json in field.json_names
    ]


def test_the_body_of_http_has_all_fields() -> None:
    has = [name for name in ScheduleBody.model_fields if name != "payload_json"]
    why = lacks("api/json/bodies.py, DefinitionBody", names_in_json(NOT_IN_A_BODY), has)
    assert not why, why


def test_the_answer_of_http_has_all_fields() -> None:
    has = list(ScheduleAnswer.model_fields)
    wanted = names_in_json(NOT_IN_AN_ANSWER)
    missing = [name for name in wanted if name not in has]
    assert not missing, f"api/json/shapes.py, SummaryAnswer lacks {', '.join(missing)}"


def test_the_command_line_has_all_options() -> None:
    group: Any = typer.main.get_command(program())
    create: click.Command = group.commands["schedule"].commands["create"]
    has = {option for parameter in create.params for option in parameter.opts}
    for field in FIELDS.values():
        if field.name not in NOT_AN_OPTION:
            assert field.flag in has, (
                "cli (when_options.py, bound_options.py, rule_options.py, event_options.py):"
                " `schedule create` has no"
                f" option {field.flag or 'in the table'} for {field.name}"
            )


def test_the_page_of_schedules_shows_every_kind() -> None:
    text = (ROOT / "docs" / "schedules.md").read_text("utf-8")
    for kind in KINDS.values():
        shown = (kind.name, kind.field.name, kind.field.flag, kind.field.header)
        missing = [name for name in shown if f"`{name}`" not in text]
        assert not missing, f"docs/schedules.md says nothing of {', '.join(missing)}"


def test_every_header_stands_on_a_page() -> None:
    page = (ROOT / "docs" / "schemas.md").read_text("utf-8")
    missing = [name for name in headers.PROTOCOL if f"`{name}`" not in page]
    assert not missing, f"docs/schemas.md says nothing of {missing}"


def test_the_reference_of_the_schema_has_all_fields() -> None:
    text = (ROOT / "docs" / "schemas.md").read_text("utf-8")
    missing = [name for name in FIELDS if f"\n| `{name}` |" not in text]
    assert not missing, f"docs/schemas.md lacks {missing}: python -m tests.compatibility.reference"


def test_no_name_is_given_twice() -> None:
    for attribute in ("header", "flag", "argument"):
        given = [getattr(field, attribute) for field in FIELDS.values()]
        names = [name for name in given if name]
        assert len(names) == len(set(names)), f"two fields have the same {attribute}"


def test_what_is_derived_follows_the_table() -> None:
    assert EMPTY.keys() == {name for name, field in FIELDS.items() if not field.required}
    told = {field.header for field in FIELDS.values() if field.header}
    # One is about records that come back, and no field.
    assert told | {RETRY} == headers.PROTOCOL
    assert set(KIND_OF) == {kind.field.name for kind in KINDS.values()}
