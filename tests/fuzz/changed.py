"""Plays changed seeds into doors: ``python -m tests.fuzz.changed [-n INPUTS] [-s SEED] DOOR …``.

Without coverage as a guide, and so without the fuzzer's tracing: a hundred thousand inputs take a
few seconds for most doors, where libFuzzer needs longer than that to begin.  An input that breaks a
promise is written to `.fuzz/`, and the run goes on; it fails at its end.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import process_time
from typing import Final

from tests.fuzz.doors import DOORS, records
from tests.fuzz.limits import MOST_S, timed

HERE: Final = Path(__file__).parent
FOUND: Final = Path(".fuzz")
MOST_BYTES: Final = 4_000
# Of one door; more of them would be alike.
MOST_FAULTS: Final = 20
TIMES: Final = (1, 1, 2, 3, 6)
ODD: Final = (
    *(b"\0", b"\xff", b"\x7f", b"\x80", b"\0\0\0\x04", b"\xff\xff\xff\xff", b"9" * 20, b"-1"),
    *(b"{", b"[", b'"', b"null", b"1e999", b"true", b"[]", b"{}"),
)


def main() -> int:
    """Play the doors that are named, or all; 1 where one of them broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.changed")
    parser.add_argument("-n", "--inputs", type=int, default=100_000)
    parser.add_argument("-s", "--seed", type=int, default=1)
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=", ".join(DOORS))
    asked = parser.parse_args()
    faults = sum(play(name, asked.inputs, asked.seed) for name in asked.doors or DOORS)
    return int(faults > 0)


def play(name: str, inputs: int, seed: int) -> int:
    """So many inputs of one door; how many faults there were."""
    folder = HERE / "corpus" if name == "requests" else HERE / "seeds" / name
    seeds = [path.read_bytes() for path in sorted(folder.iterdir())]
    random, door = Random(seed), DOORS[name]()
    played, faults, slowest_s, began = 0, 0, 0.0, process_time()
    while played < inputs and faults < MOST_FAULTS:
        played += 1
        data = changed(random, seeds)
        before = process_time()
        try:
            door(data)
            took_s = (process_time() - before) / records(name, data)
            if took_s > MOST_S:
                took_s = min(took_s, timed(DOORS[name](), data) / records(name, data))
                assert took_s <= MOST_S, f"{took_s * 1000:.0f} ms"
            slowest_s = max(slowest_s, took_s)
        except Exception:  # noqa: BLE001  # whatever it is, it is a fault
            faults += 1
            _keep(name, data, faults)
            door = DOORS[name]()
    cpu_s = process_time() - began
    print(
        f"{name}: {played} inputs, {faults} faults, slowest {slowest_s * 1000:.1f} ms,"
        f" {cpu_s:.0f} s of CPU",
        flush=True,
    )
    return faults


def changed(random: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, changed at some places."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice(TIMES)):
        at, odd = random.randrange(len(data) + 1), random.choice(ODD)
        match random.randrange(7):
            case 0:
                data[at : at + 1] = random.randbytes(1)
            case 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2:
                data[at:at] = odd
            case 3:
                data[at : at + len(odd)] = odd
            case 4:
                del data[at : at + random.choice((1, 2, 4, 16))]
            case 5:
                other = random.choice(seeds)
                data[at:] = other[random.randrange(len(other) + 1) :]
            case _:
                data[at:at] = data[at : at + random.randrange(1, 32)]
    return bytes(data[:MOST_BYTES])


def _keep(name: str, data: bytes, number: int) -> None:
    FOUND.mkdir(exist_ok=True)
    (FOUND / f"{name}-changed-{number}").write_bytes(data)
    traceback.print_exc(limit=-4)


if __name__ == "__main__":
    sys.exit(main())
