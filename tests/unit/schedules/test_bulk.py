"""Jobs over many schedules: what is allowed, and what is said of each part that is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from belfry.schedules.bulk import BULK_STOP, PER_SECOND, BulkSpec, bulk_problem, read_bulk
from belfry.schedules.fields import EMPTY
from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS
from belfry.schedules.rejections import Rejection

ACTIONS = "CANCEL, PAUSE, RESUME, MOVE, TRIGGER, BACKFILL, REKEY"
RANGE = {"action": "BACKFILL", "range_from": SECONDS_LIMIT, "range_until": SECONDS_LIMIT + 1}


@pytest.mark.parametrize(
    "said",
    [
        {"action": "CANCEL"},
        {"action": "CANCEL", "prefix": "", "per_second": 1},
        {"action": "PAUSE", "prefix": "ä" * 127, "per_second": 10_000},
        {"action": "RESUME", "schedule_id": "a" * 255, "group": "g", "event_type": "e"},
        {"action": "TRIGGER", "state": "PENDING", "due_from": 0, "due_until": 2 * YEARS_100_MS},
        {"action": "MOVE", "state": "PAUSED", "move_ms": -YEARS_100_MS},
        {"action": "MOVE", "move_ms": YEARS_100_MS, "due_from": -2 * YEARS_100_MS},
        RANGE,
        {"action": "REKEY"},
        {"action": "REKEY", "key": "0123456789abcdef"},
    ],
)
def test_a_job_is_read_as_it_is_said(said: dict[str, Any]) -> None:
    job = BulkSpec(**said)
    assert read_bulk(json.dumps(said)) == job
    assert read_bulk(job.text()) == job
    # Null counts as not given.
    assert read_bulk(json.dumps({**said, "group": said.get("group")})) == job
    assert job.per_second == said.get("per_second", PER_SECOND)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, f"has the action None: give one of {ACTIONS}"),
        ({"action": "FIRE"}, f"has the action 'FIRE': give one of {ACTIONS}"),
        ({"action": "x" * 99}, f"has the action '{'x' * 59}: give one of {ACTIONS}"),
        ({"state": "DONE"}, "has the state 'DONE': give PENDING or PAUSED, or none for both"),
        ({"prefix": 7}, "has the prefix 7: give up to 255 bytes of UTF-8"),
        ({"prefix": "ä" * 128}, f"has the prefix '{'ä' * 59}: give up to 255 bytes of UTF-8"),
        ({"prefix": "\ud800"}, r"has the prefix '\ud800': give up to 255 bytes of UTF-8"),
        ({"schedule_id": ""}, "has the schedule_id '': give 1-255 bytes of UTF-8"),
        ({"group": "g" * 256}, f"has the group '{'g' * 59}: give 1-255 bytes of UTF-8"),
        ({"event_type": ["e"]}, "has the event_type ['e']: give 1-255 bytes of UTF-8"),
        ({"prefix": "a", "schedule_id": "b"}, "has a prefix and a schedule_id: keep one"),
        ({"due_from": "1"}, "has the due_from '1': give whole milliseconds"),
        ({"due_until": 1.5}, "has the due_until 1.5: give whole milliseconds"),
        ({"due_until": True}, "has the due_until True: give whole milliseconds"),
        ({"due_from": 2 * YEARS_100_MS + 1},
         f"has the due_from {2 * YEARS_100_MS + 1}: give whole milliseconds"),
        ({"per_second": 0}, "has the per_second 0: give 1 to 10000"),
        ({"per_second": 10_001}, "has the per_second 10001: give 1 to 10000"),
        ({"per_second": "5"}, "has the per_second '5': give 1 to 10000"),
        ({"move_ms": 5}, "has a move_ms, and its action is not MOVE"),
        ({"action": "MOVE"}, "lacks move_ms, for a MOVE"),
        ({"action": "MOVE", "move_ms": 0}, "has a move_ms that is 0, or more than 100 years"),
        ({"action": "MOVE", "move_ms": YEARS_100_MS + 1},
         "has a move_ms that is 0, or more than 100 years"),
        ({"range_from": 5}, "has a range_from, and its action is not BACKFILL"),
        ({"range_until": 5}, "has a range_until, and its action is not BACKFILL"),
        ({"range_from": 4, "range_until": 5}, "has a range_from, and its action is not BACKFILL"),
        ({"action": "BACKFILL"}, "lacks range_from or range_until, for a BACKFILL"),
        ({**RANGE, "range_until": None}, "lacks range_from or range_until, for a BACKFILL"),
        ({**RANGE, "range_from": SECONDS_LIMIT - 1},
         f"has the range_from {SECONDS_LIMIT - 1}: give epoch milliseconds, 2001 or later"),
        ({**RANGE, "range_until": SECONDS_LIMIT},
         "has a range_from that is not before its range_until"),
        ({"key": "0123456789abcdef"}, "has a key, and its action is not REKEY"),
        ({"action": "REKEY", "key": "0123456789ABCDEF"},
         "has the key '0123456789ABCDEF': give the 16 hexadecimal digits of its id, or none"),
        ({"action": "REKEY", "key": 7},
         "has the key 7: give the 16 hexadecimal digits of its id, or none"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_told_word_by_word(said: dict[str, Any], why: str) -> None:
    given = said if "action" in said or not said else {"action": "CANCEL", **said}
    assert read_bulk(json.dumps(given)) == Rejection("bad_bulk", f"bulk {why}.")


def test_a_job_belongs_to_a_request_for_many() -> None:
    request: Any = {**EMPTY, "action": BULK_STOP, "bulk": '{"action": "CANCEL"}'}
    assert bulk_problem(request) == Rejection(
        "bad_bulk", "bulk is for BULK, and not for BULK_STOP."
    )
    assert bulk_problem(request | {"bulk": None}) is None
    assert bulk_problem(request | {"action": "BULK"}) is None
    assert bulk_problem(request | {"action": "BULK", "bulk": None}) is not None
