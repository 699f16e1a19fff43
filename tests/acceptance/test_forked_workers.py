"""Workers that the suite forks from a template are processes as others are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from belfry import __version__
from belfry.devstack import free_port
from tests.acceptance.harness.forked import (
    ROOT,
    TEMPLATES,
    Forked,
    Template,
    Templates,
    foreign,
    has_pidfds,
)
from tests.acceptance.harness.site import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")

# Forks a worker, tells its id, and dies without a word to it.
DIES: Final = """
import os, sys
from pathlib import Path
from tests.acceptance.harness.forked import TEMPLATES, Forked
assert TEMPLATES.fits(os.environ)
log = Path(sys.argv[1])
print(Forked(TEMPLATES.next(), ["worker"], env=os.environ, log=log).pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def forked(tmp_path: Path) -> Callable[..., Forked]:
    def start(*argv: str, **environment: str) -> Forked:
        assert TEMPLATES.fits(os.environ)
        env = {**os.environ, **environment}
        return Forked(TEMPLATES.next(), list(argv), env=env, log=tmp_path / "log")

    return start


def nobody() -> dict[str, str]:
    """Variables of a worker whose broker is not there, which waits for it."""
    return {"BELFRY_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}"}


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def test_it_has_arguments_variables_folder_and_log_of_its_own(
    forked: Callable[..., Forked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert forked("--version").wait(60)
    (tmp_path / "belfry.toml").write_text("here = 1\n")
    refused = forked("worker", BELFRY_HTTP_PORT="of its own")
    assert refused.wait(60)
    assert refused.exit_code() not in (None, 0)
    said = (tmp_path / "log").read_text("utf-8")
    assert __version__ in said
    assert "of its own" in said
    assert "here in the settings file" in said


def test_it_is_killed_and_stopped_as_others_are(forked: Callable[..., Forked]) -> None:
    killed, stopped = (forked("worker", **nobody()) for _ in range(2))
    assert killed.exit_code() is None
    assert not killed.wait(0.1)
    # A group of its own, which no Ctrl-C of a terminal reaches.
    assert os.getpgid(killed.pid) == killed.pid
    # Forks of one template would hash strings alike.
    assert parent(killed.pid) != parent(stopped.pid)
    killed.kill()
    assert killed.exit_code() == -signal.SIGKILL == killed.exit_code()
    stopped.stop()
    assert stopped.exit_code() is not None


def test_it_dies_with_whoever_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIES, str(tmp_path / "log")]
    env = {**os.environ, **nobody(), "PYTHONPATH": os.pathsep.join((str(ROOT / "app"), str(ROOT)))}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_for("its end", lambda: not Path(f"/proc/{int(done.stdout)}").exists())


def test_what_python_reads_when_it_starts_is_not_forked() -> None:
    assert TEMPLATES.fits({**os.environ, "BELFRY_HTTP_PORT": "1", "PYTEST_CURRENT_TEST": "x"})
    assert not TEMPLATES.fits({**os.environ, "LD_PRELOAD": "clock.so"})


def test_without_ids_that_are_waited_for_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_pid: int) -> int:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "pidfd_open", forbidden)
        has_pidfds.cache_clear()
        assert not TEMPLATES.fits(os.environ)
    has_pidfds.cache_clear()
    assert TEMPLATES.fits(os.environ)


@pytest.fixture
def templates() -> Iterator[Templates]:
    """Templates that a test may hurt."""
    found = Templates()
    assert found.fits(os.environ)
    yield found
    found.end()


def test_a_template_that_has_ended_is_replaced(templates: Templates, tmp_path: Path) -> None:
    first, second = templates.next(), templates.next()
    first.end()
    assert not first.runs
    third, fourth = templates.next(), templates.next()
    assert fourth is second
    assert third not in (first, second)
    told = Forked(third, ["--version"], env=os.environ, log=tmp_path / "log")
    assert (told.wait(60), told.exit_code()) == (True, 0)


def test_what_an_interrupted_test_has_asked_for_confuses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, log = Template(foreign(os.environ)), tmp_path / "log"
    env = {**os.environ, **nobody()}
    answer = template._answer

    def interrupted() -> dict[str, Any]:
        raise TimeoutError

    try:
        with monkeypatch.context() as patched:
            patched.setattr(template, "_answer", interrupted)
            with pytest.raises(TimeoutError):
                Forked(template, ["worker"], env=env, log=log)
        lost = list[int]()

        def noted() -> dict[str, Any]:
            found = answer()
            lost.append(found.get("pid", 0))
            return found

        with monkeypatch.context() as patched:
            patched.setattr(template, "_answer", noted)
            known = Forked(template, ["--version"], env=env, log=log)
        assert lost[1:] == [known.pid]
        assert known.wait(60)
        with monkeypatch.context() as patched:
            patched.setattr(template, "_answer", interrupted)
            with pytest.raises(TimeoutError):
                known.exit_code()
        assert known.exit_code() == 0
        wait_for("its end", lambda: template.ask({"ended": lost[0]})["code"] == -signal.SIGKILL)
    finally:
        template.end()


def test_it_has_the_priority_of_who_asks(tmp_path: Path, templates: Templates) -> None:
    env, log = {**os.environ, **nobody()}, tmp_path / "log"
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    template = templates.next()
    found = list[Forked]()

    def lower() -> None:
        # Of this thread alone.
        os.setpriority(os.PRIO_PROCESS, 0, 19)
        found.append(Forked(template, ["worker"], env=env, log=log))

    found.append(Forked(template, ["worker"], env=env, log=log))
    thread = threading.Thread(target=lower)
    thread.start()
    thread.join()
    assert [os.getpgid(each.pid) for each in found] == [each.pid for each in found]
    wait_for("their priorities", lambda: list(map(niceness, found)) == [usual, 19])


def niceness(fork: Forked) -> int:
    return os.getpriority(os.PRIO_PROCESS, fork.pid)


def test_its_log_is_there_at_once(tmp_path: Path) -> None:
    class Asked:
        def ask(self, order: dict[str, Any]) -> dict[str, Any]:
            assert Path(order["log"]).read_bytes() == b""
            return {"pid": os.getpid()}

    asked: Any = Asked()
    assert not Forked(asked, ["worker"], env={}, log=tmp_path / "log").wait(0)
