"""The transition table is whole: every state and every action has a step."""

from __future__ import annotations

from itertools import product

from belfry.schedules.bulk import BULK_ACTIONS
from belfry.schedules.calendars import CALENDAR_ACTIONS
from belfry.schedules.request import ACTIONS, KEEPING
from belfry.schedules.transitions import TABLE, State, Transition, table

EVERYWHERE = BULK_ACTIONS | CALENDAR_ACTIONS


def test_every_state_and_action_has_a_step() -> None:
    assert TABLE.keys() == set(product(State, ACTIONS - EVERYWHERE))


def test_every_step_is_taken_somewhere() -> None:
    assert set(TABLE.values()) == set(Transition)


def test_keeping_actions_are_actions() -> None:
    assert KEEPING < ACTIONS


def test_the_table_for_people_says_the_same() -> None:
    head, line, *rows = table().splitlines()
    assert (head.split()[1], line) == ("request", "|---|---|---|---|---|")
    states = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert states == [state.value for state in State]
    assert len(rows) == len(ACTIONS - EVERYWHERE)
    for row in rows:
        action, *steps = [cell.strip() for cell in row.strip("|").split("|")]
        for state, step in zip(State, steps, strict=True):
            assert TABLE[state, action.strip("`")].value == step
