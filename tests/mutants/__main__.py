"""`python -m tests.mutants ROOM`: mutants of a room's modules, and which of them no test kills.

mutmut makes the mutants. All tests of the room are run once to see which of them reach what, and
then those that reach each mutant (`forking.py`). Of those that survive, mypy refuses some
(`typed.py`). A run ends after so many seconds, and the next one goes on. `--one-in 5` looks at a
fifth of the mutants, always the same ones, and `--most 6` tries each with its shortest tests alone.
`--show` prints the change of each mutant that survived.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from math import inf
from pathlib import Path
from typing import Any, Final

from tests.architecture.tree import ROOT
from tests.mutants.forking import PLAN, Plan
from tests.mutants.rooms import ROOMS
from tests.mutants.stage import (
    KILLED,
    LEFT,
    NOT_RUN,
    REFUSED,
    MutantResult,
    change,
    counted,
    keep,
    made_of,
    results,
    sampled,
    staged,
)
from tests.mutants.typed import refused

LOG: Final = "pytest.log"
COLUMNS: Final = (*KILLED, *LEFT, NOT_RUN)


def main() -> int:
    """0 where all that was looked at is killed, 1 where something survived, 2 where nothing was."""
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODULE", help="firing/due.py")
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="of the room's, only these")
    parser.add_argument(
        "--seconds", type=int, default=600, help="of the whole run; its tests come first"
    )
    parser.add_argument("--children", type=int, default=1)
    parser.add_argument(
        "--one-in", type=int, default=1, metavar="N", help="look at one mutant in N, drawn by name"
    )
    parser.add_argument(
        "--most", type=float, default=inf, metavar="SECONDS", help="of the tests of each mutant"
    )
    parser.add_argument("--again", action="store_true", help="only what survived, by new tests")
    parser.add_argument("--show", action="store_true", help="changes that no test noticed")
    given = parser.parse_args()
    until_s = time.time() + given.seconds
    folder = staged(given.room, given.only, _mutate)
    wanted = LEFT if given.again else (NOT_RUN,)
    drawn = sampled(results(folder, given.only), given.one_in)
    todo = [each for each in drawn if each.outcome in wanted]
    if todo and not _run(folder, given, todo, until_s):
        return 2
    if todo:
        _refuse(folder, given.only)
    found = [*results(folder, given.only)]
    _tell(found)
    if all(each.outcome == NOT_RUN for each in found):
        print(f"The tests themselves took all of the {given.seconds} s: give a longer time.")
        return 2
    left = [each for each in found if each.outcome in LEFT]
    for each in left:
        print(f"{each.outcome:10} {each.name}")
        if given.show:
            print(change(folder, each))
    return int(bool(left))


def _mutate(path: str, code: str) -> Any:
    from mutmut.mutation.file_mutation import (  # type: ignore[import-not-found]
        mutate_file_contents,
    )

    return mutate_file_contents(path, code)


def _run(folder: Path, given: Namespace, todo: list[MutantResult], until_s: float) -> bool:
    """Run the room's tests for each of these mutants; False where they cannot be run."""
    by_module: defaultdict[str, list[str]] = defaultdict(list)
    for each in todo:
        by_module[each.module].append(each.name)
    plan = Plan(str(folder), by_module, until_s, given.children, given.most)
    place = folder / "plan.json"
    place.write_text(json.dumps(plan._asdict()), "utf-8")
    source = folder / "src"
    tests = [f"tests/{each}" for each in given.tests or ROOMS[given.room].tests]
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.mutants.forking"]
    command = [sys.executable, "-m", "pytest", "-qq", "-o", f"pythonpath={source} .", *options]
    environment = os.environ | {
        PLAN: str(place),
        "PYTHONPATH": f"{source}:{ROOT}",
        "MUTANT_UNDER_TEST": "",
        # A seed of the simulator is the same run only where strings are hashed alike.
        "PYTHONHASHSEED": "0",
    }
    with (folder / LOG).open("w") as log:
        ended = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, check=False, stdout=log, stderr=log
        )
    if ended.returncode not in (0, 5):
        print((folder / LOG).read_text("utf-8")[-2_000:])
        return False
    return True


def _refuse(folder: Path, only: list[str]) -> None:
    """Tell what mypy refuses from what survives."""
    modules = {each.module for each in results(folder, only) if each.outcome in LEFT}
    for module, names in (refused(folder, sorted(modules)) if modules else {}).items():
        made = made_of(folder, module)
        left = [name for name in names if made.outcomes.get(name) in LEFT]
        made.outcomes.update(dict.fromkeys(left, REFUSED))
        keep(folder, module, made)


def _tell(found: list[MutantResult]) -> None:
    """A line for each module, and their sum."""
    print(f"\n{'module':32} {'mutants':>8}" + "".join(f"{each:>10}" for each in COLUMNS))
    total: Counter[str] = Counter()
    for module, counts in counted(found).items():
        total += counts
        _line(module, counts)
    _line("all", total)
    looked = total.total() - total[NOT_RUN]
    killed = sum(total[each] for each in KILLED)
    print(f"{killed} of {looked} killed: {100 * killed / max(1, looked):.1f} %\n")


def _line(module: str, counts: Counter[str]) -> None:
    cells = "".join(f"{counts[each]:>10}" for each in COLUMNS)
    print(f"{module:32} {counts.total():>8}{cells}")


if __name__ == "__main__":
    sys.exit(main())
