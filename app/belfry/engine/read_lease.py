"""The read lease: for how long after a commit an owner may answer reads without asking anybody.

    sent                 acknowledged                                    sent + LEASE_MS
    ├──── a commit ─────┤                                                │
    └───────────────── what is read in here is the truth ────────────────┘ later: commit first

A commit that Kafka acknowledged proves that nobody had fenced this owner when it was sent.  While
somebody reads, manifests say that a lease is held, and a successor that finds such a manifest lets
`OUTWAIT_MS` pass since it was appended before it changes anything.  So an owner reads within its
lease the same as a successor would, even if it has been fenced already.

A successor may itself be fenced before that time has passed.  The next one looks at the last
manifest alone, so the successor's first manifest carries the wait on, as if a lease began with it:

    A    manifest, lease ├──────── A may answer reads ────────┤
    B         first manifest, "lease" ├─── waits ── fenced
    C                    first manifest ├────────── waits, from B's manifest ──────────┤ fires

Without a lease (nobody has read for a while, or the group is moving partitions) a read is true once
a commit that was sent after it has been acknowledged.  Readers ask for one, and all that wait share
it.  The instants are monotonic milliseconds; a process that was frozen finds its lease run out.

One thread commits and any other may read: each field is written in one go, and a lease is shortened
before the manifest that says so is sent.

A reader's two questions, in order, with LEASE_MS 800:

    .000   a commit is sent, acknowledged at .020        proven at .000
    .500   rows are read; covers(.500)                   yes: .500 ≤ .000 + 800
    .900   rows are read; covers(.900)                   no: ask for a commit, and wait for it

The idea is the leader's lease of Raft (Ongaro's dissertation, 6.4.1), after Gray and Cheriton,
*Leases* (1989).  Safety rests on clocks that run at about the same pace.
"""

from __future__ import annotations

from math import inf
from typing import Final

LEASE_MS: Final = 800.0
# A lease in use is renewed so long before its end that no reader has to wait.
RENEW_MS: Final = 300.0
# Manifests say that a lease is held for so long after the last read.
WANTED_MS: Final = 2_000.0


class ReadLease:
    """The lease of one term of ownership; `settled` while no commit is about to end."""

    __slots__ = (
        "_asked_ms",
        "_length_ms",
        "_next_ms",
        "_proven_ms",
        "_sent_ms",
        "settled",
        "wanted",
    )

    def __init__(self) -> None:
        self.settled = True
        self.wanted = False
        self._asked_ms = self._proven_ms = self._sent_ms = -inf
        self._length_ms = self._next_ms = 0.0

    # -- for readers -----------------------------------------------------------------------------

    def covers(self, read_ms: float) -> bool:
        """Whether rows that were read by this instant (monotonic ms) were the truth then.

        Ask with the instant *after* the read: a process may be frozen between the two.
        """
        return read_ms <= self._proven_ms + self._length_ms

    def asked(self, read_ms: float) -> bool:
        """Somebody has read; whether the owner has to be woken for the commit that this takes."""
        self._asked_ms = read_ms
        if self.wanted or read_ms <= self._proven_ms + min(self._length_ms, RENEW_MS):
            return False
        self.wanted = True
        return True

    # -- for the owner ---------------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether the last manifest says that a lease is held."""
        return self._length_ms > 0

    def begin(self, now_ms: float, *, may: bool) -> bool:
        """A commit begins; whether its manifest is to say that a lease is held."""
        takes = may and now_ms - self._asked_ms <= WANTED_MS
        self._next_ms = LEASE_MS if takes else 0.0
        self._length_ms = min(self._length_ms, self._next_ms)
        return takes

    def serves(self) -> None:
        """Call this before `sent`: a reader that asks from now on asks for a later commit."""
        self.wanted = False

    def sent(self, now_ms: float) -> None:
        """The manifest is about to be sent."""
        self._sent_ms = now_ms

    def ends(self) -> None:
        """The transaction may become visible at any moment: rows that lack it may be stale."""
        self.settled = False

    def committed(self) -> None:
        """The commit was acknowledged, and its rows are in the store."""
        self._proven_ms, self._length_ms = self._sent_ms, self._next_ms
        self.settled = True

    def aborted(self) -> None:
        """The transaction was rolled back, so nothing of it was ever visible."""
        self.settled = True
