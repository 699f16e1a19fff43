"""The process that only posts: ``python -m belfry.delivery.sender_process``.

It is started by `separate_sender.py`, without belfry's settings in its environment, and talks to
strangers. It reads its orders and work from standard input and writes answers to standard output,
each with its length in front, and ends when its input does.

    parent ─► stdin    orders (JSON): networks, secrets, per_host
           ─► stdin    work (pickle): [(number, Work), …]; None: give up what is under way;
                       {"breaks": [HostBreak, …]}: hosts that are broken, or closed again
           ◄─ stdout   answers (JSON): number, end, target, code, reason, …
           ◄─ stderr   its log lines

If it is killed, the parent sees the end of stdout and starts another one. If the parent is killed,
stdin ends here, and so does this process: it never posts without a parent.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO, Final

import orjson

from belfry.api.workers.host_breaks import HostBreaks
from belfry.delivery.addresses import networks
from belfry.delivery.answers import Answer
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.http_requests import Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.transport import HttpTransport
from belfry.delivery.work import Work, WorkId
from belfry.host.clock import SystemClock
from belfry.host.memory import look_for_cycles_rarely

# A frame's length stands before it, big-endian.
LENGTH_BYTES: Final = 4


def read_frame(pipe: BinaryIO, most_bytes: int | None = None) -> bytes | None:
    """The next frame, or None at the end; ValueError for one of more bytes than it may have."""
    size = pipe.read(LENGTH_BYTES)
    if len(size) < LENGTH_BYTES:
        return None
    length = int.from_bytes(size, "big")
    if most_bytes is not None and length > most_bytes:
        raise ValueError(f"a frame of {length} bytes; at most {most_bytes} are read")
    frame = pipe.read(length)
    return frame if len(frame) == length else None


def framed(frame: bytes) -> bytes:
    """A frame as it lies in the pipe, with its length in front."""
    return len(frame).to_bytes(LENGTH_BYTES, "big") + frame


def write_frame(pipe: BinaryIO, frame: bytes) -> None:
    """Write a frame, at once."""
    pipe.write(framed(frame))
    pipe.flush()


def main() -> None:
    """Post the incoming work until the input ends."""
    # Ctrl-C, or a supervisor, reaches all processes; the parent says when it is over.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # Output of a print must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Frames are bytes, so the text layer of stdin is not used.
    given: Any = sys.stdin.buffer
    orders = orjson.loads(read_frame(given) or b"{}")
    clock = SystemClock()
    allowed = networks(orders["networks"])
    secrets = Secrets(orders["secrets"])
    breaks = HostBreaks()
    means = SenderDependencies(
        lambda: HttpTransport(clock, allowed), secrets, clock, orders["per_host"], breaks=breaks
    )

    def finished(work_id: WorkId, _work: Work, answer: Answer) -> None:
        said = (answer.target, answer.code, answer.reason, answer.not_before_ms, answer.heard)
        sent = [(*each[:3], each.end.value, *each[4:]) for each in answer.sent]
        # The parent may have been killed: then the input has ended as well, and so does this
        # process.
        with suppress(BrokenPipeError):
            write_frame(answers, orjson.dumps([work_id.offset, answer.end.value, *said, sent]))

    sender = HttpSender(means, finished)
    sender.start()
    look_for_cycles_rarely()
    while (frame := read_frame(given)) is not None:
        told: Any = pickle.loads(frame)  # noqa: S301  # its parent's
        if told is None:
            sender.drop()
        elif isinstance(told, dict):
            breaks.merge(told["breaks"], int(clock.wall_ms()))
        else:
            sender.hand_in([(WorkId(0, 0, number), work) for number, work in told])
    sender.stop()


if __name__ == "__main__":
    main()
