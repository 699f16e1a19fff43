"""The protocol's models, checked by SPIN: which there are, what is planted in them, how one is run.

    models/ownership.pml ─► spin -a ─► pan.c ─► gcc ─► pan: every order of steps ─► states, errors

A check is a model with its bounds, and has to visit at least so many states and find nothing.  A
planted bug is the same model with one step done wrongly, and has to be found for the reason that it
is there for.  A search that was cut off counts for neither.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

MODELS: Final = Path(__file__).parent / "models"
NEEDED: Final = ("spin", "gcc")
LONGEST_S: Final = 100.0
# Paths are shorter by far; SPIN says where one was not (`CUT_OFF`).
DEPTH: Final = 20_000
CUT_OFF: Final = ("max search depth too small", "Search not completed", "out of memory")

# A step of a replay: number, process, its kind, place, statement; and those that tell nothing.
STEP: Final = re.compile(
    r"^ *(\d+):\tproc +(\d+) \(:?(\w+):+\d+\) (?:.*/)?(\S+) \(state \d+\).*?\t\[(.*)\]$"
)
DULL: Final = ("goto", "DO", "IF", "else", "sub-sequence", "1)", "i = ", "k = ", "stable = (")

# Statements that FAULTS, REPEATS or RACES may rule out in some process, and ends of endless ones.
RULED_OUT: Final = ("-end-", "result = ", "epoch[", "txn[", "net[", "awaits[", "reply[")

# What a model asserts, as SPIN shows it, and what it means when it does not hold.
FINDINGS: Final = {
    "visible[(fired[_pid]-1)]<=1": "an event fires twice",
    "visible[k]>=1": "an event is lost",
    "log_row[stable]>watermark": "the watermark goes back",
    "epoch[0]<20": "two workers fence each other for ever",
    "(owns[assigned]>1)&&told[assigned]": "nobody owns the partition whom the group has told so",
    "(owns[(1-assigned)]==0)&& !(told[(1-assigned)])": "two workers own the partition",
    "visible[0]==1": "an event has not fired",
    "outcomes[(told-1)]==1": "a request has two outcomes",
    "accepted<=1": "a request id is accepted twice",
    "handed<=1": "a request is handed over twice",
    "state_of[(told-1)]==": "a request that was rolled back has an outcome",
    "next_position>position": "the position goes back",
    "seen==state": "a read within a lease is not the truth",
    "fires<=1": "an event fires twice",
    "fires==1": "an event has not fired",
    "==(judged+1)": "an outcome comes twice or out of turn",
    "judged==2": "a request has no outcome",
    "judged==1": "a request has no outcome",
    "fires==2": "an event has not fired",
    "==(fires+1)": "an event comes twice or out of order",
    "now.here[0]&&now.here[1]": "a request is judged where not all of its group is",
    "left[at]<=1": "a request is sent on or taken in twice",
    "(left[0]==1)&&(left[1]==1)": "a request is neither sent on nor taken in",
    "!(knows)||(told>=2)": "a worker takes partitions for homes",
    "now.here": "a request is judged where its schedule is not",
}


@dataclass(frozen=True)
class Check:
    """A model with its bounds, and how many states it has at least."""

    model: str
    bounds: tuple[str, ...]
    least_states: int

    @property
    def name(self) -> str:
        """The model and its bounds, for tables and tests."""
        return " ".join((self.model, *self.bounds))


@dataclass(frozen=True)
class Bug:
    """One step done wrongly: the name that plants it, and what SPIN has to find."""

    model: str
    name: str
    found: str
    bounds: tuple[str, ...] = ()


CHECKS: Final = (
    Check("ownership", ("PROTOCOL=2",), 600_000),
    Check("ownership", ("PROTOCOL=1", "FAULTS=2"), 1_000_000),
    Check("ownership", ("IN_TURN", "PROTOCOL=2", "FAULTS=0"), 400_000),
    Check("takeover", ("FAULTS=1", "MOVES=0"), 300_000),
    Check("takeover", ("FAULTS=0", "MOVES=1"), 60_000),
    Check("standby", ("PROTOCOL=2",), 900_000),
    Check("standby", ("PROTOCOL=1",), 250_000),
    Check("requests", ("FAULTS=2",), 700_000),
    Check("requests", ("INPUTS", "FAULTS=0"), 450_000),
    Check("lease", ("COMMITS=2",), 1_000_000),
    Check("moves", ("FAULTS=0",), 450_000),
    Check("moves", ("AWAY", "ALONE"), 140_000),
    Check("moves", ("THIRD", "ALONE", "FAULTS=0"), 140_000),
    Check("slices", ("ALONE",), 250_000),
    Check("growth", ("FAULTS=2", "MOVES=3"), 80_000),
    Check("growth", ("BY_HAND", "FAULTS=2", "MOVES=3"), 170_000),
)
# Wider bounds, for `make protocol DEEP=1`: half a minute, and a gigabyte of memory.
DEEP: Final = (
    Check("ownership", ("PROTOCOL=2", "FAULTS=2"), 3_000_000),
    Check("ownership", ("IN_TURN", "PROTOCOL=1"), 1_400_000),
    Check("takeover", ("FAULTS=1", "MOVES=1"), 3_000_000),
    Check("standby", ("PROTOCOL=2", "FAULTS=2", "REPEATS=0"), 6_000_000),
    Check("requests", ("INPUTS", "FAULTS=1"), 4_000_000),
    Check("lease", ("COMMITS=3",), 5_000_000),
    Check("moves", ("AWAY", "CONTENDED=1", "FAULTS=0"), 550_000),
    Check("moves", ("THIRD", "ALONE"), 4_500_000),
    Check("slices", ("FAULTS=0",), 2_300_000),
)
BUGS: Final = (
    Bug("ownership", "END_BEFORE_FENCE", "an event fires twice"),
    Bug("ownership", "ID_PER_WORKER", "an event fires twice"),
    Bug("ownership", "STORE_FIRST", "an event is lost"),
    Bug("ownership", "UNKNOWN_RETRIED", "an event fires twice"),
    Bug("ownership", "END_REPEATED", "an event fires twice", ("PROTOCOL=1",)),
    Bug("ownership", "SECOND_UNFENCED", "an event fires twice"),
    Bug("takeover", "GROUP_FOR_FENCE", "two workers own the partition"),
    Bug("takeover", "EARLY_AGAIN", "two workers fence each other for ever"),
    Bug("takeover", "NEVER_ASKS", "nobody owns the partition whom the group has told so"),
    Bug("standby", "READS_UNCOMMITTED", "an event is lost"),
    Bug("standby", "HIDDEN_IGNORED", "an event fires twice"),
    Bug("standby", "REST_UNREAD", "an event fires twice"),
    Bug("requests", "POSITION_APART", "a request has two outcomes"),
    Bug("requests", "IDS_IN_MEMORY", "a request id is accepted twice"),
    Bug(
        "requests",
        "SOURCE_UNCOMMITTED",
        "a request that was rolled back has an outcome",
        ("INPUTS",),
    ),
    Bug("requests", "INPUT_POSITION_EARLY", "a request is handed over twice", ("INPUTS",)),
    Bug("lease", "NO_OUTWAIT", "a read within a lease is not the truth"),
    Bug("lease", "SHORT_OUTWAIT", "a read within a lease is not the truth"),
    Bug("lease", "WAIT_NOT_CARRIED", "a read within a lease is not the truth"),
    Bug("lease", "READS_UNSETTLED", "a read within a lease is not the truth"),
    Bug("moves", "ROWS_APART", "a request is judged where its schedule is not", ("ALONE",)),
    Bug("moves", "TOMBSTONES_APART", "an event fires twice", ("ALONE",)),
    Bug("moves", "ROWS_UNDECIDED", "an outcome comes twice or out of turn", ("ALONE",)),
    Bug("moves", "SENT_BY_MAP", "an outcome comes twice or out of turn", ("ALONE",)),
    Bug("moves", "NOT_HELD", "a request is judged where its schedule is not", ("AWAY",)),
    Bug("moves", "HELD_IN_MEMORY", "a request has no outcome", ("AWAY",)),
    Bug("moves", "RELEASED_EARLY", "a request is judged where its schedule is not", ("AWAY",)),
    Bug("slices", "FIRES_LEAVING", "an event comes twice or out of order", ("ALONE",)),
    Bug("slices", "FIRES_ARRIVING", "an event comes twice or out of order", ("ALONE",)),
    Bug("slices", "LEAVING_FORGOTTEN", "a request has no outcome", ("ALONE",)),
    Bug("slices", "SENT_BETWEEN", "a request is judged where not all of its group is", ("ALONE",)),
    Bug("growth", "HOMES_LATE", "a worker takes partitions for homes"),
    Bug("growth", "BEGINS_ANEW", "a request is sent on or taken in twice", ("BY_HAND",)),
    Bug("growth", "SENDER_UNFENCED", "a request is sent on or taken in twice"),
    Bug("growth", "OVER_UNSAID", "a request is sent on or taken in twice"),
    Bug("growth", "OVER_LATE", "a request is sent on or taken in twice"),
    Bug("growth", "OVER_UNREAD", "a request is sent on or taken in twice"),
)


@dataclass(frozen=True)
class Verdict:
    """What SPIN says of a model: `found` is empty where nothing is wrong."""

    states: int
    errors: int
    found: str
    seconds: float
    output: str

    @property
    def untaken(self) -> set[str]:
        """Statements of the model that no history came to, but for those that bounds rule out."""
        listed = re.findall(r'^\t\S+\.pml:\d+, state \d+, "(.*)"$', self.output, re.MULTILINE)
        return {each for each in listed if not each.startswith(RULED_OUT)}

    @property
    def whole(self) -> bool:
        """Whether every state was visited."""
        return not any(sign in self.output for sign in CUT_OFF)


def missing() -> list[str]:
    """The programs that are needed and not there."""
    return [name for name in NEEDED if shutil.which(name) is None]


def checked(model: str, defined: tuple[str, ...], folder: Path) -> Verdict:
    """Check a model with these names defined; `folder` is for what is made on the way."""
    began = monotonic()
    names = [f"-D{name}" for name in defined]
    _run(["spin", *names, "-a", str(MODELS / f"{model}.pml")], folder)
    # Unoptimized where a bug is looked for: it is found sooner than gcc would be done.
    how = ["-O0"] if any(bug.name in defined for bug in BUGS) else ["-O1"]
    # A third longer and half the memory, of which wider bounds want gigabytes.
    if any((deep.model, deep.bounds) == (model, defined) for deep in DEEP):
        how.append("-DCOLLAPSE")
    _run(["gcc", *how, "-w", "-DSAFETY", "-o", "pan", "pan.c"], folder)
    output = _run(["./pan", f"-m{DEPTH}", "-w22"], folder)
    states, errors = _number(r"(\d+) states, stored", output), _number(r"errors: (\d+)", output)
    return Verdict(states, errors, _found(output), monotonic() - began, output)


def story(model: str, defined: tuple[str, ...], folder: Path) -> str:
    """The steps that lead to what was found, as SPIN tells them; `checked` comes before it."""
    names = [f"-D{name}" for name in defined]
    trail = folder / f"{model}.pml.trail"
    replay = ["spin", *names, "-k", str(trail), "-t", "-p", str(MODELS / f"{model}.pml")]
    # It replays up to the assertion that fails, and ends with an error for that.
    told = _run(replay, folder, fails=True)
    before, _, behind = told.partition("text of failed assertion")
    lines = before.splitlines() + behind.splitlines()[1:2]
    found = (STEP.match(line) for line in lines)
    return "\n".join(
        f"{line[1]:>5}  {line[2]} {line[3]:12} {line[4]:18} {line[5]}"
        for line in found
        if line and not line[5].lstrip(".(").startswith(DULL)
    )


def _run(command: list[str], folder: Path, *, fails: bool = False) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert fails or done.returncode == 0, done.stdout
    return done.stdout


def _number(pattern: str, output: str) -> int:
    match = re.search(pattern, output)
    assert match is not None, output
    return int(match[1])


def _found(output: str) -> str:
    """What was found, in words; as SPIN says it where there are none for it."""
    match = re.search(r"^pan:1: (.*) \(at depth \d+\)$", output, re.MULTILINE)
    if match is None:
        return ""
    return next((words for sign, words in FINDINGS.items() if sign in match[1]), match[1])
