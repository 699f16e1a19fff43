"""The base of the routes: parts that the worker brings as it comes up.

    12:00:00.0  the port listens; gate and peers are there        GET a schedule: 503 `starting`
    12:00:01.2  the worker has reached Kafka, and calls `open`    GET a schedule: answered

The port answers from the first second, when there is no Kafka yet; until `open` is called, each
route that needs a part is answered 503, with what the worker waits for. Health needs none of them,
so an orchestrator sees a worker that waits for Kafka as one that lives and is not ready.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from belfry.api.auth.access import Gate
from belfry.api.problems import Problem
from belfry.api.server.limits import Traffic
from belfry.api.workers.checkpoint_door import CheckpointDoor
from belfry.api.workers.day_payloads import DayPayloads
from belfry.api.workers.directory import Directory
from belfry.api.workers.holdings import Holdings
from belfry.api.workers.host_breaks import HostBreaks
from belfry.api.workers.internal_token import InternalToken
from belfry.api.workers.kept import KeptTopics
from belfry.api.workers.key_group_moves import KeyGroupMoves
from belfry.api.workers.last_answers import LastAnswers
from belfry.api.workers.peers import Peers
from belfry.api.workers.request_client import RequestClient
from belfry.api.workers.shared_breaks import SharedBreaks
from belfry.audit.trail import Trail
from belfry.history.follower import Follower
from belfry.host.tls_files import RenewedContext
from belfry.policies.policy_client import PolicyClient
from belfry.telemetry.tracing import Tracing
from belfry.wire.worker_keys import Keys

# Seconds: the header of each 503 that is over soon.
RETRY_SOON = {"retry-after": "1"}


@dataclass(frozen=True, slots=True)
class Open:
    """The parts of a worker that is connected.

    `request_client` writes requests and hears verdicts, `holdings` are the partitions that are held
    here, `directory` tells who holds the others, `history` follows the lifecycle topic, and
    `policies` reads and writes those of tenants. `kept` is None if this process does not read those
    topics, `checkpoints` if it keeps none for other workers, and `moves` if it is not a worker.
    `day_payloads` reads payloads that lie in day files.
    """

    request_client: RequestClient
    holdings: Holdings
    directory: Directory
    history: Follower
    policies: PolicyClient
    kept: KeptTopics | None = None
    checkpoints: CheckpointDoor | None = None
    moves: KeyGroupMoves | None = None
    day_payloads: DayPayloads = field(default_factory=lambda: DayPayloads(None))


class ApiDependencies:
    """Gate and peers from the first second, the rest once the worker is connected.

    `open` is called once, by another thread than the port's; the reference is replaced as a whole.
    """

    def __init__(
        self,
        gate: Gate,
        keys: Keys,
        now_ms: Callable[[], float],
        trail: Trail | None = None,
        tracing: Tracing | None = None,
        believed: RenewedContext | None = None,
    ) -> None:
        """Workers sign forwarded requests with `keys`; `trail` leads to the audit log.

        `believed` has the authorities of other workers' certificates; None: those of the machine.
        """
        self.tracing = tracing
        self.trail = trail or Trail()
        self.gate = gate
        self.now_ms = now_ms
        self.traffic = Traffic()
        self.internal_token = InternalToken(keys, gate, now_ms)
        self.peers = Peers(self.internal_token, believed)
        self.last_answers = LastAnswers()
        # Written by a route, and read by the sender in this process.
        self.breaks = HostBreaks()
        self._shared_breaks: SharedBreaks | None = None
        self._open: Open | None = None

    def open(self, parts: Open) -> None:
        """The worker is connected."""
        self._open = parts

    def share(self, breaks: SharedBreaks) -> None:
        """Kafka answers, so breaks of hosts are kept there from now on, until `end`."""
        self._shared_breaks = breaks
        breaks.start()

    def end(self) -> None:
        """Close the connections that were opened here."""
        if self._shared_breaks is not None:
            self._shared_breaks.stop()

    @property
    def shared_breaks(self) -> SharedBreaks:
        """Breaks of hosts in Kafka; raises `Problem` before it has answered."""
        if self._shared_breaks is None:
            detail = "The process is starting: it has not reached Kafka yet. Try again."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
        return self._shared_breaks

    @property
    def ready(self) -> Open:
        """The parts of a connected worker; raises `Problem` before it is one."""
        if self._open is None:
            detail = "The worker is starting: it has not reached Kafka yet. Try again."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
        return self._open

    @property
    def checkpoints(self) -> CheckpointDoor | None:
        """The checkpoints that other workers may fetch; None if there is none, or not yet."""
        return None if self._open is None else self._open.checkpoints

    @property
    def kept(self) -> KeptTopics:
        """The reads of topics; raises `Problem` before the worker can read them."""
        found = self.ready.kept
        if found is None:
            detail = "This worker does not read these topics yet. Try again."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
        return found
