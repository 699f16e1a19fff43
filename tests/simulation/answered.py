"""Answers over HTTP are true: each says what became of the record that its call wrote (I45 to I47).

    I45   an answer with an outcome is that of a committed transaction, on the record that this
          worker wrote for the call, with the status that the documentation gives it; a call that is
          refused before it is written leaves nothing behind
    I46   of all records with one request id one has an outcome of its own, and the others repeat
          it, but for refusals that depend on the moment, of which any number may come before it; a
          caller that goes on asking is answered
    I47   a look shows what had been decided when it began, or later

A call that was asked twice is here:

    12:00:00.0  PUT by m0 ─► record at 2/70           no answer: m0 is killed
    12:00:02.0  PUT by m1 ─► record at 2/74
    12:00:02.5  2/70 is ACCEPTED, 2/74 is DUPLICATE   m1 answers 201: DUPLICATE of ACCEPTED, at 2/74
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.calling import UNAVAILABLE, Call, Look

if TYPE_CHECKING:
    from tests.simulation.ports import Answer
    from tests.simulation.trail import Step
    from tests.simulation.world import World

WRONG: Final = (400, 415, 422)
# What is said of a request that was acknowledged, and has no outcome in time.
LIES: Final = "The request lies in Kafka"
TOLD: Final = 202
STATUS: Final = {
    "ACCEPTED": 201,
    "UPDATED": 200,
    "UNCHANGED": 200,
    "TRIGGERED": 200,
    "CANCELLED": 200,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "TOO_LATE": 409,
    "REJECTED": 422,
}
# Codes of refusals that depend on the moment, and their status.  They are not remembered.
LATER: Final = {"tenant_held": UNAVAILABLE}
CONDITIONAL: Final = ("put_new", "put_match")
# What creates by POST takes the same once more for no conflict.
SAME: Final = "same_definition"
CREATES: Final = ("post", "many")
# What has fired is still shown; what was cancelled is not.
ENDS: Final = ("FIRED", "CANCELLED")
# An event, and the number of its transaction among all that were decided.
Event = tuple[int, dict[str, Any]]


def check_answered(world: World, partitions: list[list[Step]]) -> Iterator[str]:
    """What is wrong with the answers of a world whose workers are called."""
    if world.calling is None:
        return
    yield from world.calling.problems
    by_id: defaultdict[str, list[Event]] = defaultdict(list)
    by_name: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    steps = sorted((step for steps in partitions for step in steps), key=lambda e: e.txn.number)
    for step in steps:
        for event in step.told:
            if event["request_id"] is not None:
                by_id[event["request_id"]].append((step.txn.number, event))
            by_name[event["tenant"], event["schedule_id"]].append((step.txn.number, event))
    names = {sent.place: sent.name for sent in world.load.sent}
    for call in world.calling.calls:
        events = by_id[call.request_id]
        for what in _refused(call) if call.kind == "wrong" else _judged(call, events):
            yield f"{what[:3]} {call.name} ({call.kind}) {what[4:]}"
    for look in world.calling.looks:
        events = by_name[look.tenant, look.schedule_id]
        yield from (f"I47 {what}" for what in _looked(look, events, names))


def _refused(call: Call) -> Iterator[str]:
    """What is wrong is refused, and leaves nothing."""
    for answer, _ in call.answers:
        if answer.status not in (*WRONG, UNAVAILABLE):
            yield f"I45 was answered {answer.status} {answer.body[:80]!r}"
    if call.records:
        yield "I45 was written, and is nothing that could be"


def _judged(call: Call, events: list[Event]) -> Iterator[str]:
    """All answers to a call, against what became of its records."""
    if not (call.settled or call.given_up):
        yield f"I46 was called {call.tries} times, and never answered"
    told_of = [event for _, event in events]
    own = [event for event in told_of if _is_own(event)]
    refused = [event for event in told_of if event["code"] in LATER]
    if len(own) > 1 or bool(own or refused) != bool(call.records):
        yield f"I46 has {len(call.records)} records, and {[each['outcome'] for each in own]}"
        return
    if own and refused and told_of.index(refused[-1]) > told_of.index(own[0]):
        yield f"I46 is refused as {refused[-1]['code']} behind its outcome {own[0]['outcome']}"
    was = own[0]["outcome"] if own else "nothing"
    for event in told_of:
        if event["outcome"] == "DUPLICATE" and event["code"] != was:
            yield f"I46 repeats {event['code']}, and was {was}"
    for answer, by in call.answers:
        told = json.loads(answer.body or b"{}")
        if answer.status == TOLD and call.kind == "told":
            yield from _placed(call, told, by)
        elif answer.status != UNAVAILABLE or told.get("outcome") is not None:
            yield from _ended(call, answer, told, by, events)
        elif LIES in told["detail"] and not _lay(call, by, answer):
            yield f"I45 was told by {by} that its request lies in Kafka, and none did"


def _is_own(event: dict[str, Any]) -> bool:
    """Whether an event is an outcome that repeats get again."""
    return event["outcome"] != "DUPLICATE" and event["code"] not in LATER


def _placed(call: Call, told: dict[str, Any], by: str) -> Iterator[str]:
    """Where it lies is all that was asked for."""
    place = told["source_topic"], told["source_partition"], told["source_offset"]
    if not _wrote(call, place, by) or told["outcome"] is not None:
        yield f"I45 is said to lie at {place}, with {told['outcome']}"


def _lay(call: Call, by: str, answer: Answer) -> bool:
    """Whether a record that this worker wrote for it lay there when it was answered."""
    written = zip(call.records, call.by, strict=True)
    return any(who == by and each.appended_ms <= answer.at_ms for each, who in written)


def _wrote(call: Call, place: tuple[Any, Any, Any], by: str) -> bool:
    """Whether this worker wrote this record for it."""
    return (place, by) in zip([each.place for each in call.records], call.by, strict=True)


def _ended(
    call: Call, answer: Answer, told: dict[str, Any], by: str, events: list[Event]
) -> Iterator[str]:
    """An answer tells a committed outcome of the record that it is about."""
    place = told.get("source_topic"), told.get("source_partition"), told.get("source_offset")
    if "outcome" not in told or not _wrote(call, place, by):
        yield f"I45 was answered {answer.status} by {by} for {place}: {answer.body[:120]!r}"
        return
    mine = [
        (number, event)
        for number, event in events
        if (event["source_topic"], event["source_partition"], event["source_offset"]) == place
    ]
    if len(mine) != 1:
        yield f"I45 was answered {told['outcome']} for {place}, which has {len(mine)} outcomes"
        return
    number, event = mine[0]
    if number > answer.decided:
        yield f"I45 was answered {told['outcome']} before that was committed"
    outcome, code = event["outcome"], event["code"]
    first = event if outcome != "DUPLICATE" else next(e for _, e in events if _is_own(e))
    if call.kind in CREATES and first["outcome"] == "CONFLICT" and first["code"] == SAME:
        first = {"outcome": "UNCHANGED", "code": None}
        outcome = "UNCHANGED" if outcome == "CONFLICT" else outcome
        code = "UNCHANGED" if outcome == "DUPLICATE" else None
    if (told["outcome"], answer.status) != (outcome, _status(call, first)):
        yield f"I45 ended in {outcome} ({code}), and was answered {answer.status} {told['outcome']}"


def _status(call: Call, first: dict[str, Any]) -> int:
    """The status of a call that ended so, or whose first record did."""
    if first["outcome"] == "CONFLICT" and call.kind in CONDITIONAL:
        return 412
    refused = first["outcome"] == "REJECTED"
    return (LATER.get(first["code"]) if refused else None) or STATUS[first["outcome"]]


# -- looks -----------------------------------------------------------------------------------------


def _looked(look: Look, events: list[Event], names: dict[Any, str]) -> Iterator[str]:
    """What was shown had been decided when the look began, or came before it was answered."""
    answer = look.answer
    told = json.loads(answer.body or b"{}")
    shown = None
    if answer.status == 200:
        waits = told["state"] == "PENDING"
        shown = told["version"], told["payload_text"] if waits else told["state"]
    elif answer.status != 404:
        yield f"{look.schedule_id} was answered {answer.status} {answer.body[:80]!r}"
        return
    stood: list[tuple[int, tuple[int, str] | None]] = [(0, None)]
    state: tuple[int, str] | None
    for number, event in events:
        place = event["source_topic"], event["source_partition"], event["source_offset"]
        if event["outcome"] in ("ACCEPTED", "UPDATED"):
            state = event["version"], names.get(place, "")
        elif event["outcome"] in ENDS and stood[-1][1] is not None:
            fired = event["outcome"] == "FIRED"
            state = (event["version"], "FIRED") if fired else None
        else:
            continue
        if stood[-1][0] == number:
            stood.pop()
        stood.append((number, state))
    since = [state for number, state in stood if number <= look.begun][-1:]
    may = since + [state for number, state in stood if look.begun < number <= answer.decided]
    if shown not in may:
        where = f"between {look.begun} and {answer.decided}"
        yield f"{look.tenant}/{look.schedule_id} was shown as {shown} {where}, and was {may}"
