"""`python -m tests.mutants ROOM`: mutants of a room's modules, and which of them no test kills.

mutmut makes the mutants, runs all tests of the room once to see which of them reach what, and then
those that reach each mutant. A run ends after so many seconds, and the next one goes on. `--show`
prints the change of each mutant that survived. What mutmut says is in `.mutants/ROOM/mutmut.log`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Final

from tests.mutants.rooms import ROOMS
from tests.mutants.stage import KILLED, MutantResult, counted, results, staged

MUTMUT: Final = (sys.executable, "-m", "mutmut")
LOG: Final = "mutmut.log"
COLUMNS: Final = ("killed", "timeout", "survived", "no tests", "not run")


def main() -> int:
    """0 where all that was looked at is killed, 1 where something survived, 2 where nothing was."""
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODULE", help="firing/due.py")
    parser.add_argument(
        "--seconds", type=int, default=600, help="of the whole run; its tests come first"
    )
    parser.add_argument("--children", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="only what survived, by new tests")
    parser.add_argument("--show", action="store_true", help="changes that no test noticed")
    given = parser.parse_args()
    folder = staged(given.room, given.only)
    named = [each.name for each in _left(folder)] if given.again else []
    if not _run(folder, given.seconds, given.children, named):
        print((folder / LOG).read_text("utf-8")[-2_000:])
        return 2
    found = [*results(folder)]
    _tell(found)
    if all(each.outcome == "not run" for each in found):
        print(f"The tests themselves took all of the {given.seconds} s: give a longer time.")
        return 2
    left = _left(folder)
    for each in left:
        if given.show:
            subprocess.run([*MUTMUT, "show", each.name], cwd=folder, check=True)
        else:
            print(f"{each.outcome:10} {each.name}")
    return int(bool(left))


def _left(folder: Path) -> list[MutantResult]:
    """The mutants that no test has noticed."""
    return [each for each in results(folder) if each.outcome in ("survived", "no tests")]


def _run(folder: Path, seconds: int, children: int, named: list[str]) -> bool:
    """Let mutmut go on for so long; what it has found by then is kept. False where it failed."""
    command = [*MUTMUT, "run", "--max-children", str(children), *named]
    with (
        (folder / LOG).open("w") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as run,
    ):
        try:
            return run.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            run.wait(60)
    return True


def _tell(found: list[MutantResult]) -> None:
    """A line for each module, and their sum."""
    print(f"\n{'module':32} {'mutants':>8}" + "".join(f"{each:>10}" for each in COLUMNS))
    total: Counter[str] = Counter()
    for module, counts in counted(found).items():
        total += counts
        _line(module, counts)
    _line("all", total)
    looked = total.total() - total["not run"]
    killed = sum(total[each] for each in KILLED)
    print(f"{killed} of {looked} killed: {100 * killed / max(1, looked):.1f} %\n")


def _line(module: str, counts: Counter[str]) -> None:
    cells = "".join(f"{counts[each]:>10}" for each in COLUMNS)
    print(f"{module:32} {counts.total():>8}{cells}")


if __name__ == "__main__":
    sys.exit(main())
