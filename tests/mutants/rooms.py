"""Which modules are mutated together, and which tests have to kill the mutants.

A mutant is a copy of a function with one small change: `<` for `<=`, 2 for 1, an argument left out.
A mutant that all tests let pass is a change that nobody would notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class MutatedRoom(NamedTuple):
    """Modules below `app/belfry`, as patterns, and tests below `tests` that need no broker."""

    modules: Sequence[str]
    tests: Sequence[str]


ROOMS: Final = {
    "firing": MutatedRoom(
        ["firing/*.py"],
        ["unit/firing", "unit/engine/test_firing_order.py", "unit/engine/test_fairness.py",
         "unit/engine/test_partition.py", "unit/engine/test_limits.py", "property/test_rest.py"],
    ),
    "engine": MutatedRoom(["engine/*.py"], ["unit/engine", "property/test_engine_model.py"]),
    "store": MutatedRoom(
        ["store/*.py", "store/layout/*.py"],
        ["unit/store", "unit/engine/test_partition.py", "unit/engine/test_rollback.py"],
    ),
    "takeover": MutatedRoom(
        ["engine/ownership.py", "engine/read_lease.py", "store/replay.py", "store/fold.py",
         "group/failure_detector.py", "group/heartbeat_watch.py", "group/silence.py",
         "partitions/resigning.py", "partitions/pacing.py", "recovery/partition_evidence.py",
         "recovery/recovery_plan.py"],
        ["unit/engine/test_ownership.py", "unit/engine/test_lease.py", "unit/store",
         "unit/engine/test_after_ack.py", "unit/engine/test_pausing.py",
         "unit/engine/test_priorities.py",
         "unit/group/test_failure_detector.py", "unit/group/test_failure_detector_bounds.py",
         "unit/group/test_silence.py", "unit/group/test_heartbeat_watch.py",
         "unit/group/test_heartbeats.py", "unit/partitions/test_resigning.py",
         "unit/partitions/test_pacing.py", "unit/partitions/test_linger.py", "unit/recovery",
         "architecture/test_documents.py"],
    ),
    "writer": MutatedRoom(
        ["transactions/errors.py", "transactions/packing.py", "transactions/produce.py",
         "transactions/requests.py", "transactions/batches.py", "kafka/outcome.py"],
        ["unit/transactions", "unit/kafka/test_transactions.py"],
    ),
    "verification": MutatedRoom(["verification/*.py"], ["unit/verification"]),
}  # fmt: skip
