"""A worker's checkpoints, in a folder and at other workers, with a clock that the test holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from prometheus_client import CollectorRegistry

from belfry.host.rocks import RocksMap
from belfry.recovery.checkpoint_making import CheckpointMaker
from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.recovery.checkpoint_peers import PATH, PIECE_BYTES, PeerCheckpoints
from belfry.recovery.checkpoint_restoring import CheckpointRestorer
from belfry.recovery.checkpoint_serving import ServedCheckpoints
from belfry.recovery.checkpoint_store import CheckpointFolder, CheckpointStore
from belfry.recovery.local_state import LocalState
from belfry.recovery.stamp import Stamp
from belfry.store.checkpoint import Checkpoint, IndexKeys, decode_index
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.schedules import ScheduleStore
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics
from belfry.telemetry.metric_maker import MetricMaker

NOW_MS: Final = 1_790_000_000_000
INTERVAL_S: Final = 60
STALE_MS: Final = 12 * 3_600_000
MINE: Final = Stamp("cluster-a", "log-1", 3)
FAR: Final = 100_000
BYTES: Final = {
    "served": "belfry_checkpoint_served_bytes_total",
    "fetched": "belfry_checkpoint_fetched_bytes_total",
}
# By which workers sign what they keep for one another.
PEERS: Final = IndexKeys((b"p" * 32,), signs=True, required=True)


class Net:
    """Workers that reach one another, by their addresses; a test may hurt what they answer."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self.asked: list[tuple[str, str]] = []
        self.hurt: Callable[[str, str, bytes], bytes] = lambda _url, _path, body: body

    def ask(self, url: str, path: str, _seconds: float) -> bytes:
        """An answer, as over HTTP."""
        self.asked.append((url, path))
        if url not in self.workers:
            raise ConnectionRefusedError(url)
        bare, _, query = path.partition("?")
        partition, _, sha256 = bare.removeprefix(f"{PATH}/").partition("/")
        served = self.workers[url].served
        if sha256:
            start = int(query.removeprefix("from="))
            found = served.piece(int(partition), sha256, start, PIECE_BYTES)
        else:
            found = served.index(int(partition))
        if found is None:
            raise FileNotFoundError(path)
        return self.hurt(url, path, found)

    def others(self, own: str) -> list[str]:
        """The addresses of all others, as they came."""
        return [url for url in self.workers if url != own]


class Worker:
    """One worker: its disk, its clock, and what it knows of checkpoints.

    With a net it keeps checkpoints for the others; without a folder it has no store.
    """

    def __init__(
        self,
        home: Path,
        stored: Path | None,
        by: IndexKeys = IndexKeys(),  # noqa: B008
        net: Net | None = None,
        peers: IndexKeys = PEERS,
    ) -> None:
        self.home = home
        self.now_ms = NOW_MS
        self.by = by
        self.reached: list[str] = []
        self.registry = CollectorRegistry()
        home.mkdir(parents=True, exist_ok=True)
        self.stored = stored or home / "none"
        self.url = f"http://{home.name}"
        clock: Any = SimpleNamespace(
            wall_ms=lambda: float(self.now_ms), monotonic_ms=lambda: float(self.now_ms)
        )
        failpoints: Any = SimpleNamespace(reach=self.reached.append)
        metrics = CheckpointMetrics(MetricMaker(self.registry))
        self.served = ServedCheckpoints(peers, clock, metrics, home, 0)
        asked = None
        if net is not None:
            net.workers[self.url] = self
            asked = PeerCheckpoints(lambda _: net.others(self.url), net.ask, peers, clock)
        self.given = CheckpointDependencies(
            store=None if stored is None else CheckpointStore(f"file://{stored}", {}),
            keys=by,
            interval_s=INTERVAL_S,
            data_dir=home,
            clock=clock,
            failpoints=failpoints,
            metrics=metrics,
            served=None if net is None else self.served,
            peers=asked,
        )
        self.maker = CheckpointMaker(self.given)
        self.restorer = CheckpointRestorer(self.given)
        self.local = LocalState(home / "partition-3", MINE, STALE_MS, clock, self.restorer)

    @property
    def folder(self) -> CheckpointFolder:
        """What lies in the store of this partition."""
        assert self.given.store is not None
        return self.given.store.folder(MINE.cluster_id, MINE.topic_id, 3)

    def there(self) -> list[Checkpoint]:
        """The checkpoints in the store, the oldest first."""
        found = sorted(self.folder.indexes().items())
        return [decode_index(index, self.by) for _, index in found]

    def files(self) -> set[str]:
        """Digests of all stored files."""
        return set(self.folder.modified_ms())

    def counted(self, outcome: str) -> float:
        """How many checkpoints came to this."""
        labels = {"outcome": outcome}
        return self.registry.get_sample_value("belfry_checkpoints_total", labels) or 0.0

    def newest_s(self) -> float | None:
        """When the newest one was written, as this worker tells it."""
        labels = {"partition": "3"}
        return self.registry.get_sample_value("belfry_checkpoint_timestamp_seconds", labels)

    def restored(self, source: str) -> float:
        """How many stores were opened from there."""
        labels = {"source": source}
        return self.registry.get_sample_value("belfry_restores_total", labels) or 0.0

    def bytes(self, what: str, **labels: str) -> float:
        """How many bytes were ``served`` or ``fetched``."""
        return self.registry.get_sample_value(BYTES[what], labels) or 0.0

    def turn(self, rows: RocksMap, *, owner: bool = False) -> None:
        """All that comes of one look: links where they are wanted, and what is carried away."""
        for _ in range(2):
            self.maker.turn(3, rows, 2_000.0, owner=owner)
            while not self.maker._jobs.empty():
                self.maker._work()

    def opened(self, low: int = 0, end: int = 10 * FAR) -> RocksMap:
        """The store of a worker that takes the partition over."""
        return self._opened(low, end, None)

    def stood_by(self, stops: Callable[[], bool]) -> RocksMap:
        """The store of a standby, which `stops` ends."""
        return self._opened(0, 10 * FAR, stops)

    def _opened(self, low: int, end: int, stops: Callable[[], bool] | None) -> RocksMap:
        changelog: Any = SimpleNamespace(ends=lambda: (low, end), holds_records=lambda: True)
        opened: RocksMap = self.local.open_newest(changelog, stops)
        return opened


def store(path: Path) -> RocksMap:
    """An open store with the stamp."""
    rows = RocksMap(path)
    rows.write({keys.META_STAMP: MINE.encode()})
    return rows


def commit(rows: RocksMap, offset: int, *names: bytes, written_ms: int = NOW_MS) -> None:
    """Write rows, as a step that ends at this offset of the changelog."""
    schedules = ScheduleStore(rows)
    for name in names:
        schedules.note(b"a/" + name, b"\x01\x02" + name)
    digest = bytes(15) + bytes((offset % 256,))
    schedules.commit(StoredState(offset, written_ms, Manifest(offset // 10, 1, 9, 0, 7, 0, digest)))


def row(rows: RocksMap, name: bytes) -> bytes | None:
    """A row that `commit` has written."""
    return ScheduleStore(rows).named(b"a/" + name)
