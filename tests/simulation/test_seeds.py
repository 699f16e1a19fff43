"""Some hundred seeds find nothing, every fault strikes, and a seed is one run and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.crowded import NEVER
from tests.simulation.faults import FILED, STEPS, STORED
from tests.simulation.forked import played
from tests.simulation.playing import finish, start
from tests.simulation.scenario import scenarios

# `make simulate` plays a thousand, and more where it is told so.
SEEDS: Final = 400
PROCESSES: Final = 2
# Of those, the first one that is played again, and as many as there are scenarios.
AGAIN: Final = 70
# As the simulator prints of each seed where it is asked to.
PRINTED: Final = re.compile(r"^seed (\d+) of \w+: (\w+)$", re.MULTILINE)
# Of each scenario that is played only where it is named.
SHARP_SEEDS: Final = 10
# Of the one that grows, which has to come by all of these.
GROWN_SEEDS: Final = 28
GROWN: Final = (
    *("grown", "growth interrupted", "move asked for", "to an added partition"),
    *("killed behind homes", "killed behind changelog", "killed behind schedules"),
    *("moved into what was added", "moved between what was added", "moved out of what was added"),
)
# Of the one that grows later.
LATE_SEEDS: Final = 12
# Of `days`, so that each of its faults strikes.
DAYS_SEEDS: Final = 20
# Of the two that follow, in turn, which have to come by all of these.
OUTSIDE: Final = ("calls", "topics")
OUTSIDE_SEEDS: Final = 12
STRUCK_OUTSIDE: Final = (
    *("record lost", "record unheard", "record late", "broker did not acknowledge"),
    *("answer lost", "called again", "written again", "caller gave up", "call passed on", "looked"),
    *("answered starting", "answered no verdict", "answered not written"),
    *("topic refuses", "given up", "delivered by a retry", "posted by two workers"),
)
# In whose worlds who looks could change something: copies, brokers that hear late, several threads.
WATCHED: Final = ("crashes", "elections", "grown", "preempted")
# Found something in `belfry verify` once: events of hidden transactions, and records of moves.
VERIFIED: Final = (("hanging", 12), ("strangers", 12), ("grown", 19), ("copied_steps", 5))
# Of `forgotten`, in which a step is refused because of it.
FORGOTTEN_SEEDS: Final = 40
# Of `crowded`, in which all of this has to happen to steps.
CROWDED_SEEDS: Final = 20
CROWDED: Final = ("waited for room", "given room", "went without room", "cut short by room")
# Of these three in turn, in which all of this has to come about.
HELD_BACK: Final = ("hung_outputs", "late_markers", "collisions")
HELD_BACK_SEEDS: Final = 18
STRUCK_HELD_BACK: Final = (
    *("hangs in an output", "hangs in lifecycle", "hangs in rejected", "hangs in undelivered"),
    *("a marker late in an output", "a marker late in the changelog"),
    *("names collide", "a name lost"),
)
# They run at the lowest priority in `make test`, beside tests that start brokers.
TIMEOUT_S: Final = 1_800.0
SHORT_S: Final = 900.0
OTHERS: Final = (
    *("late EndTxn", "lost reply", "lost batch"),
    *("late request", "moved leader", "moved coordinator", "partial Produce", "refused EndTxn"),
    "told of a leader",
    *("store away", "store silent", "payload refused", "payload elsewhere", "source told"),
    *("key renewed", STORED),
    *("cron in a zone", "union of crons", "rrule", "rrule of lines", "minutes left out"),
    *("clock put forward", "clock put back"),
    *("a tail lost", "a batch lost", "a marker lost", "a request lost", "an end went back"),
    *("to a shard", "to an own topic", "to an added partition", "a slot used again"),
    *("target refuses", "target busy", "target gone", "target silent", "target unheard"),
    *("target late", "given up", "delivered by a retry", "posted by two workers", "postponed"),
    *("hangs in an own topic", "hangs in changelog", "hangs in schedules", "hangs in deliveries"),
    *("read", "read after a write", "read not yet", "read not here"),
    *("spread changed", "sent on to another home"),
    *("changed paused", "changed fires per second", "changed pending"),
    *(
        "changed guarantee",
        "beside a transaction",
        "changed requests per second",
        "refused beyond a limit",
    ),
)
# Of the scenario `days`, which is played only where it is named.
DAYS: Final = (
    *FILED,
    *("day file written", "day file read", "day file damaged"),
    *("day store away", "day store slow", "day store silent"),
)
# Rows of the table of ownership, and lines of the log, that no run may lack (`coverage`).
COVERED: Final = (
    *("IDLE, ASSIGNED", "CATCHING_UP, CAUGHT_UP", "FENCING, FENCED", "REPLAYING, REPLAYED"),
    *("TAKING_IN, TAKEN_IN", "FIRING, UNKNOWN", "FIRING, FENCED_OFF", "IDLE, REVOKED"),
    *("taking over ahead of the group", "the owner is silent", "a standby starts over"),
)
# Found something once: scenario and seed, and the writer where it was named.
FOUND: Final = (
    *(("clocks", 1597, "librdkafka"), ("calls", 1021, ""), ("calls", 1027, "")),
    *(("calendars", 31280, ""), ("hanging", 480, ""), ("nights", 400976, "")),
)
# Could not be played again once: tenants with targets; groups whose walks wrote nothing; tenants
# that were held before anything of theirs fired; a step that held back more than it was to fire;
# workers with a secret.
PLAYED_AGAIN: Final = (
    ("webhooks", 1), ("features", 5014), ("features", 166), ("rules", 30), ("forged", 93001),
)  # fmt: skip
# Differed once where a step had moved rows without a word: cannot be judged.
NOT_JUDGED: Final = (("hurried", 27), ("hurried", 73))
# As the simulator prints it behind its last seed.
NOTHING_FOUND: Final = " transactions; 0 with findings;"


@pytest.fixture(scope="module")
def some_hundred() -> list[tuple[int, str]]:
    """How two processes ended that have played some hundred seeds, and what they printed."""
    share = SEEDS // PROCESSES
    asked = ("--seeds", str(share), "--coverage", "--prints", "--first")
    started = [start(*asked, str(number * share)) for number in range(PROCESSES)]
    printed = [finish(each, TIMEOUT_S) for each in started]
    return [(each.returncode, told) for each, told in zip(started, printed, strict=True)]


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_seeds_find_nothing_and_every_fault_strikes(some_hundred: list[tuple[int, str]]) -> None:
    printed = [told for _, told in some_hundred]
    assert [code for code, _ in some_hundred] == [0] * PROCESSES, "\n".join(printed)
    assert all("verified: worlds " in each for each in printed)
    struck = struck_in("\n".join(printed))
    assert struck >= {*STEPS, *OTHERS}, f"these did not strike: { ({*STEPS, *OTHERS} - struck) }"
    never = [each for each in COVERED if f"{each}: " not in "\n".join(printed)]
    assert not never, f"no world came by these: {never}"


def one_seed(scenario: str, seed: int, folder: Path, *more: str) -> str:
    """What a simulator prints of one seed; forked, since most of it were imports."""
    asked = ("--seeds", "1", "--first", str(seed), "--only", scenario, *more)
    return played(asked, folder / "told", SHORT_S)


def struck_in(printed: str) -> set[str]:
    """What struck, by what runs of the simulator have printed."""
    return set(re.findall(r"[:,] ([A-Za-z0-9 ]+?) \d+(?=[,\n])", printed))


@pytest.mark.timeout(SHORT_S + 30)
def test_scenarios_that_are_sharp_for_planted_bugs_find_nothing_without_them() -> None:
    alone = {"grown", "days", "forgotten", "grown_late", "crowded", *OUTSIDE, *HELD_BACK}
    named = [each.name for each in scenarios() if each.named and each.name not in alone]
    started = start("--seeds", str(SHARP_SEEDS * len(named)), "--only", ",".join(named))
    printed = finish(started, SHORT_S)
    assert started.returncode == 0, printed


@pytest.mark.timeout(SHORT_S + 30)
def test_a_belfry_that_grows_finds_nothing_and_comes_by_each_step() -> None:
    started = start("--seeds", str(GROWN_SEEDS), "--only", "grown")
    printed = finish(started, SHORT_S)
    assert started.returncode == 0, printed
    missing = {*GROWN} - struck_in(printed)
    assert not missing, f"these did not strike: {missing}"


@pytest.mark.timeout(SHORT_S + 30)
def test_a_partition_that_sends_on_gets_an_owner_with_state() -> None:
    printed = finish(start("--seeds", str(LATE_SEEDS), "--only", "grown_late"), SHORT_S)
    assert "0 with findings" in printed, printed
    missing = {"grown", "to an added partition"} - struck_in(printed)
    assert not missing, f"these did not strike: {missing}"


@pytest.mark.timeout(SHORT_S + 30)
def test_day_files_are_struck_and_nothing_is_found() -> None:
    printed = finish(start("--seeds", str(DAYS_SEEDS), "--only", "days"), SHORT_S)
    assert "0 with findings" in printed, printed
    missing = {*DAYS} - struck_in(printed)
    assert not missing, f"these did not strike day files: {missing}"


@pytest.mark.timeout(SHORT_S + 30)
def test_ids_that_are_forgotten_let_nobody_go_on_with_what_it_remembers() -> None:
    printed = finish(start("--seeds", str(FORGOTTEN_SEEDS), "--only", "forgotten"), SHORT_S)
    assert "0 with findings" in printed, printed
    assert "id forgotten" in struck_in(printed), printed


@pytest.mark.timeout(SHORT_S + 30)
def test_steps_wait_for_room_are_cut_short_and_go_without_and_nothing_is_found() -> None:
    printed = finish(start("--seeds", str(CROWDED_SEEDS), "--only", "crowded"), SHORT_S)
    assert "0 with findings" in printed, printed
    missing = {*CROWDED} - struck_in(printed)
    assert not missing, f"these did not strike: {missing}"
    idle = sum(int(count) for count in re.findall(rf"{NEVER} (\d+)", printed))
    assert idle < CROWDED_SEEDS / 4, "a world without a wait shows nothing"


@pytest.mark.timeout(2 * SHORT_S)
def test_writes_over_http_and_topics_as_targets_find_nothing_and_every_fault_strikes() -> None:
    asked = ("--seeds", str(OUTSIDE_SEEDS), "--first", "12", "--only", ",".join(OUTSIDE))
    started = [start(*asked) for _ in range(2)]
    printed, again = (finish(each, SHORT_S) for each in started)
    assert started[0].returncode == 0, printed
    prints = [text[text.index("fingerprint") :] for text in (printed, again)]
    assert prints[0] == prints[1], "a seed is one run"
    missing = {*STRUCK_OUTSIDE} - struck_in(printed)
    assert not missing, f"these did not strike: {missing}"


@pytest.mark.timeout(TIMEOUT_S + SHORT_S)
def test_a_seed_is_one_run_whatever_was_played_before_it(
    some_hundred: list[tuple[int, str]],
) -> None:
    asked = ("--seeds", str(len(scenarios())), "--first", str(AGAIN), "--prints")
    again = PRINTED.findall(finish(start(*asked), SHORT_S))
    before = PRINTED.findall(some_hundred[0][1])[AGAIN:]
    assert len(again) == len(scenarios())
    assert again == before[: len(again)]
    prints = [fingerprint for _, fingerprint in again]
    assert len(set(prints)) == len(prints), "two seeds are one run"


@pytest.mark.timeout(2 * SHORT_S)
def test_a_seed_of_traced_threads_is_one_run_by_itself(tmp_path: Path) -> None:
    # It draws for what a process works out once, unless that has been done before.
    asked = ("--only", "preempted", "--prints", "--verify", "none", "--seeds")
    alone = played((*asked, "1", "--first", "11"), tmp_path / "alone", SHORT_S)
    behind = played((*asked, "3", "--first", "9"), tmp_path / "behind", SHORT_S)
    assert len(PRINTED.findall(alone)) == 1
    assert PRINTED.findall(alone) == PRINTED.findall(behind)[2:]


@pytest.mark.timeout(SHORT_S + 30)
def test_what_hangs_where_others_read_or_comes_late_holds_nothing_else_back() -> None:
    asked = ("--seeds", str(HELD_BACK_SEEDS), "--only", ",".join(HELD_BACK), "--verify", "all")
    started = start(*asked)
    printed = finish(started, SHORT_S)
    assert started.returncode == 0, printed
    missing = {*STRUCK_HELD_BACK} - struck_in(printed)
    assert not missing, f"these did not strike: {missing}"


@pytest.mark.timeout(SHORT_S + 30)
def test_a_world_is_the_same_run_whether_it_is_verified_or_not() -> None:
    prints = []
    for verify in ("none", "all"):
        asked = ("--seeds", "8", "--only", ",".join(WATCHED), "--verify", verify)
        printed = finish(start(*asked), SHORT_S)
        assert "0 with findings" in printed, printed
        assert ("verified: worlds 8, " in printed) is (verify == "all"), printed
        prints.append(printed[printed.index("fingerprint") :])
    assert prints[0] == prints[1]


@pytest.mark.parametrize(("scenario", "seed", "writer"), FOUND)
@pytest.mark.timeout(2 * SHORT_S)
def test_a_seed_that_found_something_finds_nothing_any_more(
    scenario: str, seed: int, writer: str, tmp_path: Path
) -> None:
    asked = ("--writer", writer) if writer else ()
    printed = one_seed(scenario, seed, tmp_path, *asked)
    assert NOTHING_FOUND in printed, printed


@pytest.mark.parametrize(("scenario", "seed"), VERIFIED)
@pytest.mark.timeout(2 * SHORT_S)
def test_what_verify_found_without_a_reason_it_finds_no_more(scenario: str, seed: int) -> None:
    asked = ("--seeds", "1", "--first", str(seed), "--only", scenario, "--verify", "all")
    printed = finish(start(*asked), SHORT_S)
    assert "0 with findings" in printed, printed


@pytest.mark.parametrize(
    ("scenario", "seed", "is_judged"),
    [*((*each, True) for each in PLAYED_AGAIN), *((*each, False) for each in NOT_JUDGED)],
)
@pytest.mark.timeout(2 * SHORT_S)
def test_a_log_that_was_told_to_differ_does_not(
    scenario: str, seed: int, tmp_path: Path, *, is_judged: bool
) -> None:
    printed = one_seed(scenario, seed, tmp_path, "--replay")
    assert NOTHING_FOUND in printed, printed
    assert "replayed: " in printed
    assert ("unjudged" not in printed) is is_judged
