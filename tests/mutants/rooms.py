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
    "engine": MutatedRoom(
        ["engine/*.py"],
        ["unit/engine", "unit/firing", "unit/playback", "unit/partitions/test_linger.py",
         "property/test_engine_model.py", "property/test_recurring_model.py",
         "property/test_spread_model.py", "property/test_one_fire.py", "property/test_bulk.py",
         "property/test_plain_requests.py", "property/test_group_order.py",
         "property/test_priorities.py", "property/test_after_ack.py", "property/test_backfill.py",
         "property/test_at_once.py", "property/test_left_out.py", "property/test_deliveries.py",
         "property/test_calendar_changes.py", "property/test_bounds_at_rest.py",
         "conformance/test_triggers_fire.py"],
    ),
    "store": MutatedRoom(
        ["store/*.py", "store/layout/*.py"],
        ["unit/store", "unit/engine", "unit/recovery", "unit/firing", "unit/playback",
         "property/test_rest.py", "property/test_net.py", "property/test_bounds_at_rest.py",
         "property/test_engine_model.py", "conformance/test_ordered_map.py",
         "compatibility/test_rows.py"],
    ),
    "takeover": MutatedRoom(
        ["engine/ownership.py", "engine/read_lease.py", "store/replay.py", "store/fold.py",
         "group/failure_detector.py", "group/heartbeat_watch.py", "group/silence.py",
         "partitions/resigning.py", "partitions/pacing.py", "recovery/partition_evidence.py",
         "recovery/recovery_plan.py", "recovery/takeover.py", "recovery/evidence.py",
         "recovery/fenced_end.py", "recovery/local_state.py", "recovery/stamp.py",
         "store/net.py", "store/identity.py"],
        ["unit/engine/test_ownership.py", "unit/engine/test_lease.py", "unit/store",
         "unit/engine/test_after_ack.py", "unit/engine/test_pausing.py",
         "unit/engine/test_priorities.py",
         "unit/group/test_failure_detector.py", "unit/group/test_failure_detector_bounds.py",
         "unit/group/test_silence.py", "unit/group/test_heartbeat_watch.py",
         "unit/group/test_heartbeats.py", "unit/partitions/test_resigning.py",
         "unit/partitions/test_pacing.py", "unit/partitions/test_linger.py", "unit/recovery",
         "architecture/test_documents.py", "property/test_net.py", "mutants/seeds.py"],
    ),
    "writer": MutatedRoom(
        ["transactions/*.py", "kafka/outcome.py"],
        ["unit/transactions", "unit/kafka/test_transactions.py", "unit/kafka/test_outcome.py",
         "mutants/seeds.py"],
    ),
    "verification": MutatedRoom(
        ["verification/*.py"],
        ["unit/verification", "unit/cli/test_verify.py", "unit/cli/test_verify_elsewhere.py",
         "unit/cli/test_verify_memory.py", "unit/cli/test_verify_service.py",
         "unit/cli/test_shared_output.py", "unit/mirror/test_losses.py"],
    ),
    "schedules": MutatedRoom(
        ["schedules/*.py", "schedules/*/*.py"],
        ["unit/schedules", "unit/wire", "unit/engine", "property", "conformance/test_triggers.py",
         "conformance/test_triggers_fire.py", "compatibility/test_rows.py"],
    ),
    "wire": MutatedRoom(
        ["wire/*.py"],
        ["unit/wire", "unit/engine", "unit/client", "unit/kafka", "unit/policies",
         "unit/registry", "unit/audit", "property/test_requests.py",
         "property/test_round_trips.py", "property/test_plain_requests.py",
         "compatibility/test_golden.py"],
    ),
    "tenants": MutatedRoom(
        ["tenants/*.py"],
        ["unit/tenants", "unit/policies", "unit/wire", "unit/engine", "unit/outputs",
         "unit/delivery"],
    ),
    "planning": MutatedRoom(
        ["balance/*.py", "capacity/*.py", "placement/*.py"],
        ["unit/balance", "unit/capacity", "unit/placement", "unit/group", "unit/bench",
         "unit/recovery", "property/test_placement.py", "property/test_capacity.py",
         "unit/cli/test_rebalance.py"],
    ),
    "playback": MutatedRoom(["playback/*.py"], ["unit/playback", "unit/cli/test_replay.py"]),
}  # fmt: skip
