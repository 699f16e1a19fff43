"""The judge of logs notices a payload in one."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.harness.load import CANARY
from tests.chaos.judgement import of_logs


def test_a_payload_in_a_log_is_noticed(tmp_path: Path) -> None:
    quiet, leaking = tmp_path / "quiet.log", tmp_path / "leaking.log"
    quiet.write_bytes(b'{"event":"partition fires","pending":3}\n')
    leaking.write_bytes(b'{"event":"not decoded","value":"r1 ' + CANARY + b'"}\n')
    (finding,) = of_logs([quiet, leaking, tmp_path / "none.log"])
    assert finding.invariant == "log"
    assert "leaking" in finding.sentence
