"""Runs seeds and prints what they found.

    python -m tests.simulation --seeds 1000            the scenarios in turn, seed by seed
    python -m tests.simulation --seeds 7 --only clocks     one seed of one scenario
    python -m tests.simulation --seeds 50 --verify all     `belfry verify` over each of these worlds
    python -m tests.simulation --seeds 2 --only backlog --backlog 100000     40 s of CPU a seed

A seed reproduces its run only where Python hashes strings alike, so the process starts itself
again with ``PYTHONHASHSEED=0``.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from time import monotonic, process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.scenario import Scenario

MOST_SHOWN = 8
# So many new objects, not 700, before Python looks for garbage among them: nearly all that stays is
# of modules, and a world is gone when its seed is.
NEW_OBJECTS = 50_000


def main() -> int:
    """Run the seeds asked for; 1 where one of them found something."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    asked = _asked()
    return _run(range(asked.first, asked.first + asked.seeds), asked)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--only", help="names of scenarios, with commas; all but those that ask for it"
    )
    parser.add_argument(
        "--writer", choices=("librdkafka", "direct"), help="who writes; drawn unless given"
    )
    parser.add_argument(
        "--backlog", type=int, help="requests that lie in the log before any worker starts"
    )
    parser.add_argument("--replay", action="store_true", help="play the logs again, too")
    parser.add_argument(
        "--verify",
        choices=("some", "all", "alone", "none"),
        default="some",
        help="the worlds of which `belfry verify` makes a pass; alone: and nothing else is judged",
    )
    parser.add_argument("--coverage", action="store_true", help="say what the worlds came by")
    parser.add_argument("--prints", action="store_true", help="print the fingerprint of each seed")
    parser.add_argument("--stop", action="store_true", help="end at the first finding")
    return parser.parse_args()


def _chosen(asked: argparse.Namespace) -> list[Scenario]:
    """The scenarios asked for, with the writer and the backlog asked for."""
    from tests.simulation.scenario import scenarios

    given = {"transaction_writer": asked.writer} if asked.writer else {}
    chosen = [
        replace(each, settings=each.settings | given)
        for each in scenarios()
        if (each.name in asked.only.split(",") if asked.only else not each.named)
    ]
    if asked.backlog is not None:
        chosen = [replace(each, backlog=asked.backlog) for each in chosen]
    return chosen


def _run(seeds: Iterable[int], asked: argparse.Namespace) -> int:
    from tests.simulation.coverage import told
    from tests.simulation.run import simulate
    from tests.simulation.watch import Watch

    chosen = _chosen(asked)
    # What has been imported stays, and need not be looked through again.
    gc.freeze()
    started, cpu, watch = monotonic(), process_time(), Watch(asked.backlog or 0)
    bad, prints = 0, blake2b(digest_size=8)
    sums: Counter[str] = Counter()
    by_name: dict[str, Counter[str]] = {
        name: Counter() for name in ("replayed", "verified", "raised")
    }
    struck: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    for seed in seeds:
        scenario = chosen[seed % len(chosen)]
        watch.begins()
        report = simulate(scenario, seed, replays=asked.replay, verify=asked.verify)
        # What is left of a world ends here, and not amid the next one.
        gc.collect()
        sums.update(
            seeds=1,
            requests=report.requests,
            fired=report.fired,
            transactions=report.transactions,
        )
        struck.update(report.struck)
        for what, counts in by_name.items():
            counts.update(getattr(report, what))
        covered.update(report.covered)
        prints.update(report.fingerprint.encode())
        if asked.prints:
            print(f"seed {seed} of {report.scenario}: {report.fingerprint}")
        if report.problems:
            bad += 1
            _show(report.scenario, seed, report.problems)
            if asked.stop:
                break
    print(
        f"{sums['seeds']} seeds, {sums['requests']} requests, {sums['fired']} fired,"
        f" {sums['transactions']} transactions; {bad} with findings;"
        f" {monotonic() - started:.0f} s, {process_time() - cpu:.0f} s of CPU"
    )
    for what, counts in by_name.items():
        if counts:
            print(f"{what}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    print("struck: " + ", ".join(f"{name} {count}" for name, count in sorted(struck.items())))
    if asked.coverage:
        print("\n".join(told(covered)))
    print(f"fingerprint: {prints.hexdigest()}")
    return 1 if bad else 0


def _show(scenario: str, seed: int, problems: list[str]) -> None:
    print(f"scenario {scenario}, seed {seed}: {len(problems)} findings")
    for problem in _varied(problems)[:MOST_SHOWN]:
        print(f"    {problem}")
    print(f"    again: make simulate SEEDS=1 FIRST={seed} ONLY={scenario}", flush=True)


def _varied(problems: list[str]) -> list[str]:
    """Each problem once: the first of each kind before the second ones."""
    times: Counter[str] = Counter()
    ranked: list[tuple[int, str]] = []
    for problem in dict.fromkeys(problems):
        kind = problem.partition(" ")[0]
        times[kind] += 1
        ranked.append((times[kind], problem))
    return [problem for _, problem in sorted(ranked, key=lambda each: each[0])]


if __name__ == "__main__":
    code = main()
    # What is left need not be looked through for garbage: it ends with the process.
    gc.freeze()
    sys.exit(code)
