"""The process that posts: whose it is, and what it cannot read."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from belfry.api.workers.host_breaks import HostBreaks
from belfry.delivery import confined, separate_sender
from belfry.delivery.references import NOWHERE
from belfry.delivery.separate_sender import SeparateSender
from belfry.delivery.setup import BadWebhookSettings, means_of
from belfry.host.clock import SystemClock
from belfry.settings import Settings

SOMEBODY = "nobody"

# A parent with a secret, and a child of its user that looks for it.  Root may read all, so both
# give up what root may do first; for others that changes nothing.
DROP = """
import ctypes, os, subprocess, sys
header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(header, none) == 0
"""
CHILD = f"""{DROP}
print(open(f"/proc/{{os.getppid()}}/environ").read())
"""
PARENT = f"""
from belfry.delivery.confined import close_to_own_user
{DROP}
if sys.argv[1] == "closed":
    assert close_to_own_user()
command = [sys.executable, "-c", sys.argv[2]]
child = subprocess.run(command, env={{}}, capture_output=True, text=True)
print("PermissionError" in child.stderr, "of-kafka" in child.stdout)
"""


def child_finds(door: str) -> str:
    """Whether a child is kept out of its parent's environment, and whether it reads the secret."""
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), "SECRET": "of-kafka"}
    command = [sys.executable, "-c", PARENT, door, CHILD]
    return subprocess.check_output(command, env=environment, text=True).strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc")
def test_a_child_of_the_same_user_cannot_read_its_parent() -> None:
    assert child_finds("open") == "False True"
    assert child_finds("closed") == "True False"


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "belfry").mkdir()
    (tmp_path / "belfry" / "__init__.py").write_text("raise SystemExit('from here')")
    command = confined.command("belfry.delivery.sender_process")
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, input=b"", capture_output=True, check=False
    )
    assert b"from here" not in done.stderr


def test_a_user_that_is_none_is_named() -> None:
    with pytest.raises(BadWebhookSettings, match="no user 'no-such-one'"):
        means_of(Settings(role="deliver", webhook_user="no-such-one"), SystemClock())


def test_another_user_only_posts_where_nothing_else_is_done() -> None:
    with pytest.raises(BadWebhookSettings, match="--role deliver"):
        means_of(Settings(webhook_user=SOMEBODY), SystemClock())


def test_only_root_starts_processes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(confined.BadUser, match="as root"):
        confined.identity(SOMEBODY)


def test_the_own_user_needs_no_right() -> None:
    assert confined.identity(pwd.getpwuid(os.geteuid()).pw_name) == {}


def test_it_runs_as_the_user_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another user may not be able to run the tests' Python.
    monkeypatch.setattr(separate_sender, "command", lambda _: ["/bin/sleep", "60"])
    settings = Settings(webhook_user=SOMEBODY)
    if os.geteuid() != 0:
        with pytest.raises(confined.BadUser, match="as root"):
            SeparateSender(settings, NOWHERE, HostBreaks(), lambda *_: None)
        return
    sender = SeparateSender(settings, NOWHERE, HostBreaks(), lambda *_: None)
    sender._open()
    try:
        status = Path(f"/proc/{sender._child.pid}/status").read_text()
        uid = str(pwd.getpwnam(SOMEBODY).pw_uid)
        assert status.split("Uid:")[1].split()[:4] == [uid] * 4
        assert not status.split("Groups:")[1].split("\n")[0].strip()
    finally:
        sender._sender_input.close()
        sender._child.kill()
        sender._child.wait()
        sender._child.stdout.close()
