"""`python -m tests.protocol`: every check and every planted bug, as a table.

`--deep` adds the checks with wider bounds; `--bug NAME` shows the steps that lead to what a planted
bug does.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.protocol.checking import BUGS, CHECKS, DEEP, Bug, Check, checked, missing, story


def main() -> int:
    """0 where every check found nothing and every planted bug was found."""
    parser = ArgumentParser(prog="python -m tests.protocol", description=__doc__)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--bug", choices=[bug.name for bug in BUGS])
    given = parser.parse_args()
    if gone := missing():
        print(f"{' and '.join(gone)} not found: install the packages spin and gcc.")
        return 1
    if given.bug:
        return _tell(next(bug for bug in BUGS if bug.name == given.bug))
    held = [_check(check) for check in (*CHECKS, *(DEEP if given.deep else ()))]
    print(f"\n{'planted bug':34} {'seconds':>7}  what SPIN finds")
    caught = [_plant(bug) for bug in BUGS]
    print(f"\n{sum(held)} of {len(held)} checks hold, {sum(caught)} of {len(BUGS)} bugs are caught")
    return 0 if all(held) and all(caught) else 1


def _check(check: Check) -> bool:
    if check is CHECKS[0]:
        print(f"{'model':44} {'states':>10} {'seconds':>7}  found")
    with TemporaryDirectory() as folder:
        verdict = checked(check.model, check.bounds, Path(folder))
    holds = not verdict.errors and verdict.whole and verdict.states >= check.least_states
    said = verdict.found or ("nothing" if holds else "not all states were visited")
    print(f"{check.name:44} {verdict.states:>10,} {verdict.seconds:>7.1f}  {said}", flush=True)
    return holds


def _plant(bug: Bug) -> bool:
    with TemporaryDirectory() as folder:
        verdict = checked(bug.model, (bug.name, *bug.bounds), Path(folder))
    name = f"{bug.model} {bug.name}"
    print(f"{name:34} {verdict.seconds:>7.1f}  {verdict.found or 'NOTHING'}", flush=True)
    return verdict.found == bug.found


def _tell(bug: Bug) -> int:
    defined = bug.name, *bug.bounds
    with TemporaryDirectory() as folder:
        verdict = checked(bug.model, defined, Path(folder))
        print(story(bug.model, defined, Path(folder)))
    print(f"\n{bug.name}: {verdict.found}")
    return 0 if verdict.found == bug.found else 1


if __name__ == "__main__":
    sys.exit(main())
