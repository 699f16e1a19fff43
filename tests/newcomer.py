"""`make newcomer`: docs/first-event.md on a machine that has never seen belfry, word for word.

    git clone ─► make run ─► answers ─► curl, kcat, Python, Java, Spring Boot, Go, TypeScript
    an empty home: no environment, no cache of pip, Maven, Go or npm, no Kafka

It tells how long each took, downloads included.  The ports of the page have to be free.  The suite
runs the same blocks (`tests/acceptance/test_clients.py`) with the caches that are there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from belfry.devstack.ports import LOOPBACK, can_bind
from tests.acceptance.harness.first_event import Way, ways
from tests.architecture.tree import ROOT

PORTS: Final = (9092, 8081, 8700)
# What `belfry dev` says last, once all answers.
ANSWERS: Final = "Ctrl-C"
START_S: Final = 1_200
STEP_S: Final = 900


def main() -> None:
    """Run the page; says how long each part took, and ends with 1 where one does not work."""
    if taken := [port for port in PORTS if not can_bind(port)]:
        sys.exit(f"{LOOPBACK}: {taken} is taken, and the page uses it.")
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        home, clone = Path(folder, "home"), Path(folder, "belfry")
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = _environment(home, clone)
        with _running(clone, environment):
            failed = [each.title for each in ways() if not _works(each, clone, environment)]
    sys.exit(f"does not work: {', '.join(failed)}" if failed else 0)


def _environment(home: Path, clone: Path) -> dict[str, str]:
    """What a new user has, with the environment that the page tells them to activate."""
    kept = {name: value for name, value in os.environ.items() if "BELFRY" not in name}
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "GOCACHE", "GOMODCACHE", "GOPATH"):
        kept.pop(name, None)
    return {**kept, "HOME": str(home), "PATH": f"{clone / '.venv/bin'}:{os.environ['PATH']}"}


@contextmanager
def _running(clone: Path, environment: dict[str, str]) -> Iterator[None]:
    """`make run`, until the block ends; from its first line on it may take its time."""
    began = monotonic()
    log = clone.parent / "run.log"
    with log.open("w") as output:
        make = subprocess.Popen(
            ["make", "run"],
            cwd=clone,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while ANSWERS not in log.read_text():
            if monotonic() - began > START_S or make.poll() is not None:
                sys.exit(f"make run does not answer:\n{log.read_text()}")
            sleep(0.2)
        print(f"{monotonic() - began:6.1f} s  make run, from a clone to all that answers")
        yield
    finally:
        if make.poll() is None:
            os.killpg(make.pid, signal.SIGINT)
            make.wait(60)


def _works(way: Way, clone: Path, environment: dict[str, str]) -> bool:
    if shutil.which(way.needs, path=environment["PATH"]) is None:
        print(f"   not run  {way.title}: {way.needs} is not installed")
        return True
    for path, text in way.files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    began, shown = monotonic(), ""
    for language, text in way.typed:
        program = "python" if language == "python" else "bash"
        told = subprocess.run(
            [program, "-c", text],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            timeout=STEP_S,
            check=False,
        )
        shown = told.stdout
        if told.returncode:
            print(f"{way.title}: {text}\n{told.stdout}{told.stderr}")
            return False
    seen = [line for line in shown.splitlines() if way.shows in line]
    print(f"{monotonic() - began:6.1f} s  {way.title}: {seen[0] if seen else 'nothing fired'}")
    return bool(seen)


if __name__ == "__main__":
    main()
