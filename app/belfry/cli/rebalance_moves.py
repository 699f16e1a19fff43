"""Moves of key groups, carried out one after the other, or a few at once, and waited for.

    ask for the next ones ─► look how all of them stand ─► each that rests makes room ─► …

Only the workers keep state. So give an interrupted command again: it plans anew from where groups
lie by then, and moves that were asked for go on by themselves meanwhile.

A group that stays where it lay (a bulk job of a tenant is under way, say) is told with the reason,
and the others go on. One whose target does not answer is called off. One that is on its way for
longer than `limit_s` ends the command: `belfry rebalance status` says what to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

from belfry.cli.failures import CommandError
from belfry.cli.progress import Tell
from belfry.cli.remote import Remote, WorkerRefusal
from belfry.cli.shown import plain

PAUSE_S: Final = 0.25
PATH: Final = "/v1/key-groups"
# Causes that pass by themselves: a worker is away, or groups are on their way.
PASSES: Final = frozenset({"group_moves", "too_many_moves", "workers_silent", "starting"})
ON_ITS_WAY: Final = frozenset({"moving", "arriving", "releasing"})


class WantedMove(NamedTuple):
    """A key group that is to lie in another partition."""

    group: int
    source: int
    target: int


class MoveOutcome(NamedTuple):
    """The end of one move: `why` its group has not moved, or None if it has."""

    wanted: WantedMove
    why: str | None


class _Asked(NamedTuple):
    """A move that was asked for: its name, and when."""

    wanted: WantedMove
    move: int
    at_s: float


class Mover:
    """Carries moves out, so many at once; each may take `limit_s` seconds."""

    def __init__(
        self,
        remote: Remote,
        at_once: int,
        limit_s: float,
        clock: tuple[Callable[[], float], Callable[[float], None]] = (monotonic, sleep),
    ) -> None:
        """`clock` tells seconds, and waits for some."""
        self._remote = remote
        self._at_once = at_once
        self._limit_s = limit_s
        self._now_s, self._sleep = clock
        self._under_way: dict[int, _Asked] = {}
        self._refused_s: float | None = None

    def carry_out(self, wanted: Sequence[WantedMove], tell: Tell) -> list[MoveOutcome]:
        """Move all of these; the end of each, in the order in which they ended.

        Raises `CommandError` if a move takes too long, or if nothing can be moved.
        """
        left, done = deque(wanted), list[MoveOutcome]()
        while left or self._under_way:
            self._ask(left, done)
            tell("moves ended", len(done), len(wanted))
            if self._under_way:
                self._look(done)
                tell("moves ended", len(done), len(wanted))
            if left or self._under_way:
                self._sleep(PAUSE_S)
        return done

    def _ask(self, left: deque[WantedMove], done: list[MoveOutcome]) -> None:
        while left and len(self._under_way) < self._at_once:
            wanted = left[0]
            try:
                path = f"{PATH}/{wanted.group}/move"
                asked = self._remote.ask("POST", path, {"target": wanted.target})
            except WorkerRefusal as error:
                if error.code == "lies_there":
                    left.popleft()
                    done.append(MoveOutcome(wanted, None))
                    continue
                if error.code not in PASSES:
                    raise
                self._passes(error)
                return
            except CommandError as error:
                # It may have been asked for: then the group is on its way, or lies there.
                self._passes(error)
                return
            self._refused_s = None
            left.popleft()
            self._under_way[wanted.group] = _Asked(wanted, asked["move"], self._now_s())

    def _passes(self, error: CommandError) -> None:
        """Let an error pass; raise it if it has lasted longer than a move may take."""
        now_s = self._now_s()
        self._refused_s = now_s if self._refused_s is None else self._refused_s
        if now_s - self._refused_s > self._limit_s:
            raise error

    def _look(self, done: list[MoveOutcome]) -> None:
        """See which of them are over."""
        try:
            found = self._remote.get(PATH)
        except WorkerRefusal as error:
            if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return self._passes(error)
        except CommandError as error:
            return self._passes(error)
        if found["missing"] or found["silent"]:
            # The others have not answered yet; time goes on for a group that is under way.
            found = {**found, "key_groups": None}
        else:
            self._refused_s = None
        for asked in list(self._under_way.values()):
            ended = self._ended(asked, found)
            if ended is not None:
                del self._under_way[asked.wanted.group]
                done.append(ended)
        return None

    def _ended(self, asked: _Asked, found: dict[str, Any]) -> MoveOutcome | None:
        """The end of a move; None while it is on its way."""
        wanted = asked.wanted
        ends = (each for each in found["ended"] if each["group"] == wanted.group)
        why = next((each["why"] for each in ends if each["move"] == asked.move), None)
        if why is not None:
            return MoveOutcome(wanted, why)
        state, lies = None, wanted.source
        if found["key_groups"] is not None:
            state, lies = stands(found, wanted.group)
        if state == "rests" and lies == wanted.target:
            return MoveOutcome(wanted, None)
        if self._now_s() - asked.at_s <= self._limit_s:
            return None
        if state == "asked":
            self._remote.ask("POST", f"{PATH}/{wanted.group}/move", {"target": lies})
            return MoveOutcome(wanted, "its target has not answered, so it was called off")
        if state == "rests":
            return MoveOutcome(
                wanted, "it rests where it lay: the log of its home's owner says why"
            )
        raise CommandError(
            f"Key group {wanted.group} is on its way from {wanted.source} to {wanted.target} for"
            f" longer than {self._limit_s:g} s ({state or 'workers do not answer'}). It goes on by"
            " itself; `belfry rebalance status` tells how it stands, and what to do."
        )


def all_told(missing: Sequence[int], silent: Sequence[str]) -> None:
    """Refuse to go by half of the truth: a silent worker may know of groups that lie elsewhere.

    `missing` are partitions of which nobody told, and `silent` the workers that did not answer.
    Raises `CommandError` where there are any.
    """
    if not missing and not silent:
        return
    who = [f"nobody tells of partitions {numbers(missing)}"] if missing else []
    who += [f"{plain(name)} does not answer" for name in silent]
    raise CommandError(
        f"Not all is known: {', '.join(who)}. Nothing was asked for. Try again when all partitions"
        " have owners; `belfry doctor` says which have none."
    )


def numbers(partitions: Sequence[int]) -> str:
    """Partitions in a sentence."""
    return ", ".join(map(str, partitions))


def homes_in(found: dict[str, Any]) -> int:
    """The number of homes, by the answer of `/v1/key-groups`; a release before tells none."""
    return int(found.get("homes") or found["partitions"])


def stands(found: dict[str, Any], group: int) -> tuple[str, int]:
    """State and partition of a group, by the answer of `/v1/key-groups`."""
    for each in found["key_groups"]:
        if each["group"] == group:
            return each["state"], each["lies"]
    return "rests", group % homes_in(found)
